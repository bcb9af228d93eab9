#include "patterns/trellis_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/compensated_sum.hpp"
#include "base/interruption.hpp"

namespace crfkit {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
// A message below this may have lost digits, or underflow at the next position.
constexpr double kTiny = 1e-250;

// Calls function(destination, first arc, end of arcs, label) for the pools and then the nodes after a step;
// the label is −1 for pools and for the sink.
template <class Function>
void each_destination(const StepTable& table, const Step& step, const Function& function) {
    const std::int32_t* in = table.in_ptr.data() + step.first_in;
    const auto labels = table.labels(step.after);
    for (std::int32_t j = 0; j < step.n_destinations(); ++j)
        function(step.n_before + j, in[j], in[j + 1], j < step.n_pools ? -1 : labels[j - step.n_pools]);
}

// The same from the last to the first.
template <class Function>
void each_destination_backwards(const StepTable& table, const Step& step, const Function& function) {
    const std::int32_t* in = table.in_ptr.data() + step.first_in;
    for (std::int32_t j = step.n_destinations(); j-- > 0;) function(step.n_before + j, in[j], in[j + 1]);
}

// max_e x(source e) + score e over the arcs first..last−1.
double highest(const std::int32_t* source, const double* scores, std::int32_t first, std::int32_t last,
               const double* x) {
    double even = kNever, odd = kNever;
    std::int32_t e = first;
    for (; e + 2 <= last; e += 2) {
        even = std::max(even, x[source[e]] + scores[e]);
        odd = std::max(odd, x[source[e + 1]] + scores[e + 1]);
    }
    if (e < last) even = std::max(even, x[source[e]] + scores[e]);
    return std::max(even, odd);
}

}  // namespace

void StepScores::score(const StepTable& table, const Step& step, const double* arcs,
                       const std::vector<double>& active) {
    first_.push_back(static_cast<std::int64_t>(scores_.size()));
    for (std::int64_t e = step.first_arc; e < step.first_arc + step.n_arcs; ++e)
        scores_.push_back((table.arc[e] >= 0 ? arcs[table.arc[e]] : 0.0) +
                          (table.active[e] >= 0 ? active[table.active[e]] : 0.0));
}

void StepScores::score_all(const StepTable& table, const double* arcs, const std::vector<double>& active) {
    each_ = false;
    scores_.clear();
    first_.clear();
    steps_.resize(table.steps.size());
    for (std::size_t s = 0; s < table.steps.size(); ++s) {
        steps_[s] = static_cast<std::int32_t>(s);
        score(table, table.steps[s], arcs, active);
    }
}

void StepScores::score_weights(const Trellises& trellises, const ArcModel& model, const double* w) {
    ArcTables tables;
    std::vector<double> active;
    model.score(w, tables);
    trellises.table.score_active(w + trellises.first_weight, active);
    score_all(trellises.table, tables.arcs.scores.data(), active);
}

void StepScores::score_each(const StepTable& table, std::span<const std::int32_t> steps, const double* arcs,
                            std::int64_t n_arcs, const std::vector<double>& active) {
    each_ = true;
    scores_.clear();
    first_.clear();
    steps_.assign(steps.begin(), steps.end());
    for (std::size_t t = 0; t < steps.size(); ++t)  // the arcs of the first and the last step have no number
        score(table, table.steps[steps[t]], arcs + (t > 0 ? t - 1 : 0) * n_arcs, active);
}

void StepScores::exponentiate(const StepTable& table) {
    weights_.resize(scores_.size());
    peaks_.resize(steps_.size());
    for (std::size_t k = 0; k < steps_.size(); ++k) {
        const Step& step = table.steps[steps_[k]];
        const double* scores = scores_.data() + first_[k];
        double* weights = weights_.data() + first_[k];
        double peak = kNever;
        for (std::int64_t e = 0; e < step.n_arcs; ++e)
            if (!table.silent(step, e)) peak = std::max(peak, scores[e]);
        if (peak == kNever) peak = 0;
        for (std::int64_t e = 0; e < step.n_arcs; ++e)
            weights[e] = table.silent(step, e) ? 1.0 : std::exp(scores[e] - peak);
        peaks_[k] = peak;
    }
}

void TrellisRun::place(const ScoredTrellis& trellis) {
    node_begin.clear();
    arc_begin.clear();
    std::int64_t n_nodes = 0, n_arcs = 0;
    for (const std::int32_t number : trellis.steps) {
        const Step& step = trellis.table.steps[number];
        node_begin.push_back(n_nodes);
        arc_begin.push_back(n_arcs);
        n_nodes += step.n_sources();
        n_arcs += step.n_arcs;
    }
    forward_.resize(static_cast<std::size_t>(n_nodes) + 1);  // and the sink
    back_.resize(static_cast<std::size_t>(n_arcs));
    forward_[0] = 1;
}

// One step of scaled messages: `mass` is the sum over the nodes it leads to, before they are normalised.
// False where one is so small that it may not be exact.
bool TrellisRun::push(const ScoredTrellis& trellis, std::int64_t t, double peak, double& mass) {
    const Step& step = trellis.step(t);
    const std::int32_t* source = trellis.table.source.data() + step.first_arc;
    const double* weights = trellis.arcs.weights(t, trellis.steps[t]);
    const double* states = trellis.position(t);
    double* forward = forward_.data() + node_begin[t];
    double* back = back_.data() + arc_begin[t];
    bool exact = true;
    mass = 0;
    each_destination(trellis.table, step,
                     [&](std::int32_t j, std::int32_t e0, std::int32_t e1, std::int32_t label) {
                         double sum = 0;
                         bool linked = false;
                         for (std::int32_t e = e0; e < e1; ++e) {
                             const double f = forward[source[e]];
                             linked |= f > 0;
                             sum += back[e] = f * weights[e];
                         }
                         const double score = label >= 0 ? states[label] : 0.0;
                         const double open = label < 0 ? 1.0 : score == kNever ? 0.0 : std::exp(score - peak);
                         exact = exact && (!linked || score == kNever || sum * open > kTiny);
                         forward[j] = sum * open;
                         if (j >= step.n_sources()) mass += forward[j];
                         const double scale = sum > 0 ? 1 / sum : 0.0;
                         for (std::int32_t e = e0; e < e1; ++e) back[e] *= scale;
                     });
    return exact;
}

// False where a message may not be exact; then nothing is to be used.
bool TrellisRun::forward_scaled(const ScoredTrellis& trellis) {
    Total total;
    Pace pace;
    for (std::int64_t t = 0; t <= trellis.n_positions(); ++t) {
        pace.work(16 * trellis.step(t).n_arcs);
        const Step& step = trellis.step(t);
        double peak = 0;
        if (const double* states = trellis.position(t)) {
            peak = kNever;
            for (const std::int32_t label : trellis.table.labels(step.after))
                peak = std::max(peak, states[label]);
            if (peak == kNever) {
                log_partition_ = kNever;
                return true;
            }
        }
        double mass = 0;
        if (!push(trellis, t, peak, mass)) return false;
        if (!(mass > 0)) {  // no arc leads here
            log_partition_ = kNever;
            return true;
        }
        double* nodes = forward_.data() + node_begin[t] + step.n_sources();
        for (std::int32_t j = 0; j < step.n_after; ++j) {
            nodes[j] /= mass;
            if (nodes[j] > 0 && nodes[j] < kTiny) return false;
        }
        total.add(std::log(mass));
        total.add(peak);
        total.add(trellis.arcs.peak(t, trellis.steps[t]));
    }
    log_partition_ = total.value();
    return true;
}

// The same with logarithms of the messages, for scores of any size.
void TrellisRun::forward_in_log_space(const ScoredTrellis& trellis) {
    Total sum_of_steps;
    forward_[0] = 0;
    Pace pace;
    for (std::int64_t t = 0; t <= trellis.n_positions(); ++t) {
        pace.work(16 * trellis.step(t).n_arcs);
        const Step& step = trellis.step(t);
        const std::int32_t* source = trellis.table.source.data() + step.first_arc;
        const double* scores = trellis.arcs.scores(t, trellis.steps[t]);
        const double* states = trellis.position(t);
        double* forward = forward_.data() + node_begin[t];
        double* back = back_.data() + arc_begin[t];
        double top = kNever;
        each_destination(
            trellis.table, step, [&](std::int32_t j, std::int32_t e0, std::int32_t e1, std::int32_t label) {
                double peak = kNever, sum = 0;
                for (std::int32_t e = e0; e < e1; ++e) {
                    back[e] = forward[source[e]] + scores[e];
                    peak = std::max(peak, back[e]);
                }
                for (std::int32_t e = e0; e < e1; ++e)
                    sum += back[e] = peak == kNever ? 0.0 : std::exp(back[e] - peak);
                for (std::int32_t e = e0; e < e1; ++e)
                    if (sum > 0) back[e] /= sum;
                forward[j] = sum > 0 ? (label >= 0 ? states[label] : 0.0) + peak + std::log(sum) : kNever;
                if (j >= step.n_sources()) top = std::max(top, forward[j]);
            });
        if (top == kNever) {
            log_partition_ = kNever;
            return;
        }
        double* nodes = forward + step.n_sources();
        double mass = 0;
        for (std::int32_t j = 0; j < step.n_after; ++j) mass += std::exp(nodes[j] - top);
        const double total = top + std::log(mass);
        for (std::int32_t j = 0; j < step.n_after; ++j) nodes[j] -= total;
        sum_of_steps.add(total);
    }
    log_partition_ = sum_of_steps.value();
}

double TrellisRun::log_partition(const ScoredTrellis& trellis, bool in_log_space) {
    place(trellis);
    if (in_log_space || !forward_scaled(trellis)) forward_in_log_space(trellis);
    return log_partition_;
}

void TrellisRun::backward(const ScoredTrellis& trellis) {
    node_probs.assign(forward_.size(), 0.0);
    arc_probs.resize(back_.size());
    node_probs.back() = 1;
    Pace pace;
    for (std::int64_t t = trellis.n_positions(); t >= 0; --t) {
        pace.work(16 * trellis.step(t).n_arcs);
        const Step& step = trellis.step(t);
        const std::int32_t* source = trellis.table.source.data() + step.first_arc;
        double* nodes = node_probs.data() + node_begin[t];
        each_destination_backwards(
            trellis.table, step, [&](std::int32_t j, std::int32_t e0, std::int32_t e1) {
                for (std::int32_t e = e0; e < e1; ++e)
                    nodes[source[e]] += arc_probs[arc_begin[t] + e] = nodes[j] * back_[arc_begin[t] + e];
            });
    }
}

double TrellisRun::marginals(const ScoredTrellis& trellis, bool in_log_space) {
    if (log_partition(trellis, in_log_space) > kNever) backward(trellis);
    return log_partition_;
}

// u(j) = d log f(j) = d score(j) + Σ_e back(e) (u(src e) + d score(e)), up to a constant for each position;
// d back(e) = back(e) (u(src e) + d score(e) − their mean over the arcs into the node).
void TrellisRun::hessian_vector(const ScoredTrellis& trellis, const double* states, const StepScores& arcs) {
    slope_.assign(forward_.size(), 0.0);
    arriving_.assign(forward_.size(), 0.0);
    node_changes.assign(forward_.size(), 0.0);
    arc_changes.resize(back_.size());
    Pace pace;
    for (std::int64_t t = 0; t <= trellis.n_positions(); ++t) {
        pace.work(16 * trellis.step(t).n_arcs);
        const Step& step = trellis.step(t);
        const std::int32_t* source = trellis.table.source.data() + step.first_arc;
        const double* moves = arcs.scores(t, trellis.steps[t]);
        const double* back = back_.data() + arc_begin[t];
        double* slope = slope_.data() + node_begin[t];
        double mean = 0;
        each_destination(trellis.table, step,
                         [&](std::int32_t j, std::int32_t e0, std::int32_t e1, std::int32_t label) {
                             double sum = 0;
                             for (std::int32_t e = e0; e < e1; ++e)
                                 sum += back[e] * (slope[source[e]] + moves[e]);
                             arriving_[node_begin[t] + j] = sum;
                             slope[j] = sum + (label >= 0 ? states[t * trellis.n_labels + label] : 0.0);
                             if (j >= step.n_sources()) mean += node_probs[node_begin[t] + j] * slope[j];
                         });
        for (std::int32_t j = step.n_sources(); j < step.n_nodes(); ++j) slope[j] -= mean;
    }
    for (std::int64_t t = trellis.n_positions(); t >= 0; --t) {
        pace.work(16 * trellis.step(t).n_arcs);
        const Step& step = trellis.step(t);
        const std::int32_t* source = trellis.table.source.data() + step.first_arc;
        const double* moves = arcs.scores(t, trellis.steps[t]);
        const double* slope = slope_.data() + node_begin[t];
        double* changes = node_changes.data() + node_begin[t];
        each_destination_backwards(
            trellis.table, step, [&](std::int32_t j, std::int32_t e0, std::int32_t e1) {
                const double prob = node_probs[node_begin[t] + j], arriving = arriving_[node_begin[t] + j];
                for (std::int32_t e = e0; e < e1; ++e)
                    changes[source[e]] += arc_changes[arc_begin[t] + e] =
                        back_[arc_begin[t] + e] *
                        (changes[j] + prob * (slope[source[e]] + moves[e] - arriving));
            });
    }
}

// A label sequence is one path, so that −log p(path) = Σ −log back(e) over its arcs.
double TrellisRun::entropy() const {
    Total total;
    for (std::size_t e = 0; e < back_.size(); ++e)
        if (arc_probs[e] > 0) total.add(-arc_probs[e] * std::log(back_[e]));
    return std::max(0.0, total.value());
}

// From the sink to the first position: arcs by their probability given the node. One number a position is
// enough for the arc into a node and the arc into its pool: what is left of it is as uniform as it was.
void TrellisRun::sample(const ScoredTrellis& trellis, std::int64_t n, const double* uniforms,
                        std::int32_t* labels) const {
    const std::int64_t T = trellis.n_positions();
    const auto draw = [](const double* probs, std::int32_t first, std::int32_t last, double& u) {
        std::int32_t chosen = first;
        for (std::int32_t e = first; e < last; ++e) {
            if (probs[e] <= 0) continue;
            chosen = e;
            if (u < probs[e]) break;
            u -= probs[e];
        }
        u = std::min(u / probs[chosen], 1.0);  // above 1 where rounding left a rest
        return chosen;
    };
    Pace pace;
    for (std::int64_t i = 0; i < n; ++i) {
        std::int32_t node = 0;  // among those after the step
        for (std::int64_t t = T; t > 0; --t) {
            pace.work(32);
            const Step& step = trellis.step(t);
            const std::int32_t* source = trellis.table.source.data() + step.first_arc;
            const std::int32_t* in = trellis.table.in_ptr.data() + step.first_in;
            double u = uniforms[i * T + t - 1];
            std::int32_t j = step.n_pools + node;
            while (j >= 0) {
                node = source[draw(back_.data() + arc_begin[t], in[j], in[j + 1], u)];
                j = node - step.n_before;
            }
            labels[i * T + t - 1] = trellis.table.labels(step.before)[node];
        }
    }
}

// Forward the best scores alone; the arcs that they came by are looked up again along the one best path.
double TrellisRun::best(const ScoredTrellis& trellis, std::int32_t* labels) {
    place(trellis);
    forward_[0] = 0;
    const std::int64_t T = trellis.n_positions();
    Pace pace;
    for (std::int64_t t = 0; t <= T; ++t) {
        pace.work(16 * trellis.step(t).n_arcs);
        const Step& step = trellis.step(t);
        const std::int32_t* source = trellis.table.source.data() + step.first_arc;
        const double* scores = trellis.arcs.scores(t, trellis.steps[t]);
        const double* states = trellis.position(t);
        double* top = forward_.data() + node_begin[t];
        each_destination(trellis.table, step,
                         [&](std::int32_t j, std::int32_t e0, std::int32_t e1, std::int32_t label) {
                             const double best = highest(source, scores, e0, e1, top);
                             top[j] = label >= 0 ? best + states[label] : best;
                         });
    }
    const double score = forward_.back();
    if (score == kNever) return kNever;
    std::int32_t node = 0;  // among those after the step
    for (std::int64_t t = T; t > 0; --t) {
        const Step& step = trellis.step(t);
        const std::int32_t* source = trellis.table.source.data() + step.first_arc;
        const std::int32_t* in = trellis.table.in_ptr.data() + step.first_in;
        const double* scores = trellis.arcs.scores(t, trellis.steps[t]);
        const double* top = forward_.data() + node_begin[t];
        std::int32_t j = step.n_pools + node;
        while (j >= 0) {
            const double best = highest(source, scores, in[j], in[j + 1], top);
            std::int32_t e = in[j];
            while (e + 1 < in[j + 1] && top[source[e]] + scores[e] != best) ++e;
            node = source[e];
            j = node - step.n_before;
        }
        labels[t - 1] = trellis.table.labels(step.before)[node];
    }
    return score;
}

void TrellisRun::collect(const ScoredTrellis& trellis, const std::vector<double>& of_nodes,
                         const std::vector<double>& of_arcs, std::int64_t n_arcs, double* states,
                         double* arcs, std::vector<double>& active) const {
    const StepTable& table = trellis.table;
    for (std::int64_t t = 0; t <= trellis.n_positions(); ++t) {
        const Step& step = trellis.step(t);
        if (t < trellis.n_positions()) {
            const double* nodes = of_nodes.data() + node_begin[t] + step.n_sources();
            for (const std::int32_t label : table.labels(step.after))
                states[t * trellis.n_labels + label] += *nodes++;
        }
        for (std::int64_t e = 0; e < step.n_arcs; ++e) {
            const std::int32_t arc = table.arc[step.first_arc + e], set = table.active[step.first_arc + e];
            if (arc >= 0) arcs[(t - 1) * n_arcs + arc] += of_arcs[arc_begin[t] + e];
            if (set >= 0) active[set] += of_arcs[arc_begin[t] + e];
        }
    }
}

}  // namespace crfkit
