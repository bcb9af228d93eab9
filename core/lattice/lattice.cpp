#include "lattice/lattice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/compensated_sum.hpp"
#include "base/interruption.hpp"

namespace crfkit {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
// A normalised forward message below this may have lost digits, or underflow at the next position.
constexpr double kTiny = 1e-250;

}  // namespace

void ArcScores::exponentiate(bool soft) {
    peak = soft ? 0.0 : kNever;
    for (const double score : scores) peak = std::max(peak, score);
    if (peak == kNever) peak = 0;
    weights.resize(scores.size());
    for (std::size_t i = 0; i < scores.size(); ++i) weights[i] = std::exp(scores[i] - peak);
    unlisted = soft ? std::exp(-peak) : 0.0;
}

void Lattice::build(const Bigrams& bigrams, const Candidates& candidates, std::int64_t first,
                    std::int64_t last) {
    const std::int64_t base = candidates.position_ptr[first];
    position_ptr.clear();
    for (std::int64_t t = first; t <= last; ++t) position_ptr.push_back(candidates.position_ptr[t] - base);
    labels.assign(candidates.labels.begin() + base,
                  candidates.labels.begin() + candidates.position_ptr[last]);
    in_ptr.assign(1, 0);
    from.clear();
    arc.clear();
    place_.assign(static_cast<std::size_t>(bigrams.n_labels), -1);
    Pace pace;
    for (std::int64_t t = 0; t < n_positions(); ++t) {
        const std::int64_t before = t ? position_ptr[t - 1] : 0, here = t ? position_ptr[t] : 0;
        pace.work(8 * (here - before) * (position_ptr[t + 1] - position_ptr[t]));
        for (std::int64_t i = before; i < here; ++i) place_[labels[i]] = static_cast<std::int32_t>(i);
        for (std::int64_t j = position_ptr[t]; j < position_ptr[t + 1]; ++j) {
            const std::int32_t b = labels[j];
            const std::int64_t n_listed = bigrams.in_ptr[b + 1] - bigrams.in_ptr[b];
            if (bigrams.soft || here - before <= n_listed) {
                for (std::int64_t i = before; i < here; ++i) {
                    const std::int32_t number = bigrams.find(labels[i], b);
                    if (number < 0 && !bigrams.soft) continue;
                    from.push_back(static_cast<std::int32_t>(i));
                    arc.push_back(number);
                }
            } else if (here > before) {
                for (std::int64_t k = bigrams.in_ptr[b]; k < bigrams.in_ptr[b + 1]; ++k)
                    if (const std::int32_t i = place_[bigrams.in_before[k]]; i >= 0) {
                        from.push_back(i);
                        arc.push_back(static_cast<std::int32_t>(k));
                    }
            }
            in_ptr.push_back(static_cast<std::int64_t>(from.size()));
        }
        for (std::int64_t i = before; i < here; ++i) place_[labels[i]] = -1;
    }
}

std::int64_t Lattice::find_node(std::int64_t t, std::int32_t label) const {
    return std::lower_bound(labels.begin() + position_ptr[t], labels.begin() + position_ptr[t + 1], label) -
           labels.begin();
}

std::int64_t Lattice::find_arc(std::int64_t before, std::int64_t node) const {
    const auto first = from.begin() + in_ptr[node], last = from.begin() + in_ptr[node + 1];
    const auto found = std::lower_bound(first, last, static_cast<std::int32_t>(before));
    return found != last && *found == before ? found - from.begin() : -1;
}

void Lattice::close(const Annotation& annotation, std::int64_t first_position,
                    std::vector<double>& scores) const {
    for (std::int64_t t = 0; t < n_positions(); ++t)
        for (std::int64_t j = position_ptr[t]; j < position_ptr[t + 1]; ++j)
            if (!annotation.possible(first_position + t, labels[j])) scores[j] = kNever;
}

// Scaled messages. False where one is so small that it may not be exact; then nothing is to be used.
bool Lattice::forward_scaled(const ArcScores& arcs, std::span<const double> scores) {
    Total total;
    Pace pace;
    for (std::int64_t t = 0; t < n_positions(); ++t) {
        pace.work(16 * n_arcs_into(t));
        double peak = kNever;
        for (std::int64_t j = position_ptr[t]; j < position_ptr[t + 1]; ++j) peak = std::max(peak, scores[j]);
        if (peak == kNever) {
            log_partition_ = kNever;
            return true;
        }
        double mass = 0;
        for (std::int64_t j = position_ptr[t]; j < position_ptr[t + 1]; ++j) {
            double sum = t ? 0.0 : 1.0;
            bool linked = t == 0;
            for (std::int64_t e = in_ptr[j]; e < in_ptr[j + 1]; ++e) {
                const double f = forward_[from[e]];
                const double term = f * (arc[e] >= 0 ? arcs.weights[arc[e]] : arcs.unlisted);
                linked |= f > 0;
                back_[e] = term;
                sum += term;
            }
            const double open = scores[j] == kNever ? 0.0 : std::exp(scores[j] - peak);
            if (linked && scores[j] > kNever && !(sum * open > kTiny)) return false;
            forward_[j] = sum * open;
            mass += sum * open;
            const double scale = sum > 0 ? 1 / sum : 0.0;
            for (std::int64_t e = in_ptr[j]; e < in_ptr[j + 1]; ++e) back_[e] *= scale;
        }
        if (!(mass > 0)) {  // no arc leads here
            log_partition_ = kNever;
            return true;
        }
        for (std::int64_t j = position_ptr[t]; j < position_ptr[t + 1]; ++j) {
            forward_[j] /= mass;
            if (forward_[j] > 0 && forward_[j] < kTiny) return false;
        }
        total.add(std::log(mass));
        total.add(peak);
        if (t) total.add(arcs.peak);
    }
    log_partition_ = total.value();
    return true;
}

// The same with logarithms of the messages, for scores of any size.
void Lattice::forward_in_log_space(const ArcScores& arcs, std::span<const double> scores) {
    Total sum_of_steps;
    Pace pace;
    for (std::int64_t t = 0; t < n_positions(); ++t) {
        pace.work(16 * n_arcs_into(t));
        double top = kNever;
        for (std::int64_t j = position_ptr[t]; j < position_ptr[t + 1]; ++j) {
            double peak = t ? kNever : 0.0, sum = t ? 0.0 : 1.0;
            for (std::int64_t e = in_ptr[j]; e < in_ptr[j + 1]; ++e) {
                back_[e] = forward_[from[e]] + (arc[e] >= 0 ? arcs.scores[arc[e]] : 0.0);
                peak = std::max(peak, back_[e]);
            }
            for (std::int64_t e = in_ptr[j]; e < in_ptr[j + 1]; ++e)
                sum += back_[e] = peak == kNever ? 0.0 : std::exp(back_[e] - peak);
            for (std::int64_t e = in_ptr[j]; e < in_ptr[j + 1]; ++e)
                if (sum > 0) back_[e] /= sum;
            forward_[j] = sum > 0 ? scores[j] + peak + std::log(sum) : kNever;
            top = std::max(top, forward_[j]);
        }
        if (top == kNever) {
            log_partition_ = kNever;
            return;
        }
        double mass = 0;
        for (std::int64_t j = position_ptr[t]; j < position_ptr[t + 1]; ++j)
            mass += std::exp(forward_[j] - top);
        const double total = top + std::log(mass);
        for (std::int64_t j = position_ptr[t]; j < position_ptr[t + 1]; ++j) forward_[j] -= total;
        sum_of_steps.add(total);
    }
    log_partition_ = sum_of_steps.value();
    for (double& f : forward_) f = std::exp(f);  // only those of the last position are read again
}

double Lattice::log_partition(const ArcScores& arcs, std::span<const double> scores) {
    forward_.resize(labels.size());
    back_.resize(from.size());
    if (!forward_scaled(arcs, scores)) forward_in_log_space(arcs, scores);
    return log_partition_;
}

// From the last position to the first: the node by its message, then arcs by their probability given the
// node.
void Lattice::sample(std::int64_t n, const double* uniforms, std::int32_t* out) const {
    const std::int64_t T = n_positions();
    // The first place at which the sum exceeds u; the last possible one when rounding leaves a rest.
    const auto draw = [](const std::vector<double>& probs, std::int64_t first, std::int64_t last, double u) {
        std::int64_t chosen = first;
        for (std::int64_t i = first; i < last; ++i) {
            if (probs[i] <= 0) continue;
            chosen = i;
            if ((u -= probs[i]) < 0) break;
        }
        return chosen;
    };
    Pace pace;
    for (std::int64_t i = 0; i < n; ++i) {
        std::int64_t node = draw(forward_, position_ptr[T - 1], position_ptr[T], uniforms[i * T + T - 1]);
        for (std::int64_t t = T - 1;; --t) {
            pace.work(16);
            out[i * T + t] = labels[node];
            if (t == 0) break;
            node = from[draw(back_, in_ptr[node], in_ptr[node + 1], uniforms[i * T + t - 1])];
        }
    }
}

void Lattice::backward() {
    node_probs.assign(labels.size(), 0.0);
    arc_probs.resize(from.size());
    for (std::int64_t j = position_ptr[n_positions() - 1]; j < n_nodes(); ++j) node_probs[j] = forward_[j];
    Pace pace;
    for (std::int64_t j = n_nodes() - 1; j >= 0; --j) {
        pace.work(4 * (in_ptr[j + 1] - in_ptr[j]));
        for (std::int64_t e = in_ptr[j]; e < in_ptr[j + 1]; ++e) {
            arc_probs[e] = node_probs[j] * back_[e];
            node_probs[from[e]] += arc_probs[e];
        }
    }
}

double Lattice::marginals(const ArcScores& arcs, std::span<const double> scores) {
    if (log_partition(arcs, scores) > kNever) backward();
    return log_partition_;
}

// u(j) = d log f(j) = d score(j) + Σ_e back(e) (u(src e) + d score(e)), up to a constant for each position;
// d back(e) = back(e) (u(src e) + d score(e) − their mean over the arcs into the node).
void Lattice::hessian_vector(std::span<const double> node_direction, std::span<const double> arc_direction) {
    slope_.resize(labels.size());
    arriving_.resize(labels.size());
    node_changes.assign(labels.size(), 0.0);
    arc_changes.resize(from.size());
    const auto change = [&](std::int64_t e) {
        return slope_[from[e]] + (arc[e] >= 0 ? arc_direction[arc[e]] : 0.0);
    };
    Pace pace;
    for (std::int64_t t = 0; t < n_positions(); ++t) {
        pace.work(16 * n_arcs_into(t));
        double mean = 0;
        for (std::int64_t j = position_ptr[t]; j < position_ptr[t + 1]; ++j) {
            arriving_[j] = 0;
            for (std::int64_t e = in_ptr[j]; e < in_ptr[j + 1]; ++e) arriving_[j] += back_[e] * change(e);
            slope_[j] = arriving_[j] + node_direction[j];
            mean += node_probs[j] * slope_[j];
        }
        for (std::int64_t j = position_ptr[t]; j < position_ptr[t + 1]; ++j) slope_[j] -= mean;
    }
    for (std::int64_t j = position_ptr[n_positions() - 1]; j < n_nodes(); ++j)
        node_changes[j] = node_probs[j] * slope_[j];  // the mean is 0 already
    for (std::int64_t j = n_nodes() - 1; j >= 0; --j)
        for (std::int64_t e = in_ptr[j]; e < in_ptr[j + 1]; ++e) {
            arc_changes[e] = back_[e] * (node_changes[j] + node_probs[j] * (change(e) - arriving_[j]));
            node_changes[from[e]] += arc_changes[e];
        }
}

double Lattice::best(const ArcScores& arcs, std::span<const double> scores, std::int32_t* out) {
    std::vector<double> top(labels.size());
    std::vector<std::int32_t> before(labels.size(), -1);
    Pace pace;
    for (std::int64_t j = 0; j < n_nodes(); ++j) {
        pace.work(4 * (in_ptr[j + 1] - in_ptr[j]));
        top[j] = j < position_ptr[1] ? 0.0 : kNever;
        for (std::int64_t e = in_ptr[j]; e < in_ptr[j + 1]; ++e) {
            const double score = top[from[e]] + (arc[e] >= 0 ? arcs.scores[arc[e]] : 0.0);
            if (score > top[j]) {
                top[j] = score;
                before[j] = from[e];
            }
        }
        top[j] += scores[j];
    }
    const auto last = std::max_element(top.begin() + position_ptr[n_positions() - 1], top.end());
    std::int64_t node = last - top.begin();
    for (std::int64_t t = n_positions() - 1; t >= 0; --t) {
        out[t] = labels[node];
        if (t) node = before[node];
        if (t && node < 0) return kNever;
    }
    return *last;
}

}  // namespace crfkit
