// The forward pass of forward–backward over the paths of one graph (graph.hpp), in double precision: log Z,
// and what all other sums over paths are made of.
//
// Each node j gets its message f(j), and each arc its probability given the node it enters:
//   f(START) = 1,   f(j) ∝ exp(score j) · Σ_e f(src e) exp(score e),   Z = f(END)
//   back(e) = P(e | dst e) = f(src e) exp(score e) / Σ_e' f(src e') exp(score e')
//
// Messages are scaled: at each level the largest node score and the largest arc score are subtracted before
// exp, and the messages are divided by their sum. Why that is exact, and when it is not used, stands at
// `run_scaled`; then the pass is repeated in log space, and everything after it is the same.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/compensated_sum.hpp"
#include "base/interruption.hpp"
#include "paths/graph.hpp"

namespace crfkit {

class ForwardPass {
  public:
    // Returns log Z; −inf when no path is possible.
    template <PathGraph Graph>
    double run(const Graph& graph, bool in_log_space);

    // After run: back(e) of the arcs into a node [arcs.n], good until the next call.
    template <class Graph, PathLevel Level, PathArcs Arcs>
    const double* back(const Level& level, const Arcs& arcs);
    // After run: log α(j) of a node of level t that is not inner, α(j) = Σ over the paths from START to j of
    // exp(score).
    double log_message(std::int64_t t, std::int64_t node) const {
        return (in_log_space_ ? f_[node] : std::log(f_[node])) + log_scales_[t];
    }

  private:
    // Scaled messages outside of kTiny … 1 / kTiny are not trusted.
    static constexpr double kTiny = 1e-250;

    template <PathGraph Graph>
    bool run_scaled(const Graph& graph);
    template <PathGraph Graph>
    void run_in_log_space(const Graph& graph);
    template <PathLevel Level>
    static bool rescale(const Level& level, double mass, double maximum, double* f);
    template <PathLevel Level>
    static double subtract_log_sum(const Level& level, double* f);
    template <PathArcs Arcs>
    static double enter_in_log_space(const Arcs& arcs, const double* f, double* back);
    template <class Graph, PathLevel Level, PathArcs Arcs>
    double* place(const Level& level, const Arcs& arcs);

    double log_partition_ = 0;
    bool in_log_space_ = false;
    std::vector<double> f_;           // [nodes] f, or its logarithm
    std::vector<double> log_scales_;  // [levels] log α(j) − log f(j) of the nodes of each level
    std::vector<double> back_;        // [arcs]; [arcs into one node] where the graph does not keep arcs
};

// Where back(e) of the arcs into a node is written.
template <class Graph, PathLevel Level, PathArcs Arcs>
double* ForwardPass::place(const Level& level, const Arcs& arcs) {
    if constexpr (Graph::kKeepsArcs) return back_.data() + level.arc_base + arcs.first;
    if (static_cast<std::int64_t>(back_.size()) < arcs.n) back_.resize(static_cast<std::size_t>(arcs.n));
    return back_.data();
}

// Scaled messages: of the nodes that still have arcs to come, all are kept in units of one common scale,
//   f(j) = α(j) / exp(log_scale),    α(j) = Σ over the paths from START to j of exp(score),
// which changes from level to level. Returns false, and nothing may be used, where rounding could matter.
//
// Why a result is exact: α(j) is 0 only where no path leads to j. Every sum is either that true 0, or above
// kTiny after the node's score has been multiplied in, and every message stays within kTiny … 1 / kTiny. A
// term f(src) W(e) that underflows is off by less than 2.3e−308, so it changes a sum above 1e−250 by less
// than one part in 1e57 per arc, and its own back(e), a probability, by less than 1e−57.
template <PathGraph Graph>
bool ForwardPass::run_scaled(const Graph& graph) {
    Total log_scale;
    Pace pace;
    in_log_space_ = false;
    f_[graph.start()] = 1;
    for (std::int64_t t = 0; t < graph.n_levels(); ++t) {
        const auto level = graph.level(t);
        pace.work(16 * level.n_arcs);
        double* f = f_.data() + level.node_base;
        double* back = back_.data() + level.arc_base;
        double maximum = kAbsent,
               mass = 0;  // the highest score of the level's nodes; the sum of their messages
        for (std::int64_t j = level.outer; j < level.last; ++j)
            maximum = std::max(maximum, level.node_score(j));
        for (std::int64_t j = level.first; j < level.last; ++j) {
            const auto arcs = level.into(j);
            double* const given = back + arcs.first;
            double sum = 0;
            bool reached = false;
            for (std::int64_t k = 0; k < arcs.n; ++k) {
                const double before = f[arcs.source(k)];
                reached |= before > 0;
                sum += given[k] = before * arcs.weight(k);
            }
            const double score = j < level.outer ? 0.0 : level.node_score(j);
            const double weight = j < level.outer ? 1.0 : score == kAbsent ? 0.0 : std::exp(score - maximum);
            if (reached && score > kAbsent && !(sum * weight > kTiny)) return false;
            f[j] = sum * weight;
            if (j >= level.outer) mass += f[j];
            const double scale = sum > 0 ? 1 / sum : 0.0;
            for (std::int64_t k = 0; k < arcs.n; ++k) given[k] *= scale;
        }
        if (!(mass > 0)) continue;  // no path has a node here, and the scale stays as it is
        if (!rescale(level, mass, maximum, f)) return false;
        log_scale.add(std::log(mass));
        log_scale.add(maximum);
        log_scale.add(level.arc_maximum);
        log_scales_[t] = log_scale.value();
    }
    log_partition_ = f_[graph.end()] > 0 ? log_scale.value() : kAbsent;
    return true;
}

// Divides messages by the mass of the level. Those of earlier nodes do not contain what was subtracted from
// the scores of this level, so that is taken off them too. False where one leaves kTiny … 1 / kTiny.
template <PathLevel Level>
bool ForwardPass::rescale(const Level& level, double mass, double maximum, double* f) {
    for (std::int64_t j = level.outer; j < level.last; ++j) {
        f[j] /= mass;
        if (f[j] > 0 && f[j] < kTiny) return false;
    }
    if (level.oldest == level.first) return true;
    const double factor = std::exp(-maximum - level.arc_maximum) / mass;
    for (std::int64_t j = level.oldest; j < level.first; ++j) {
        if (!(f[j] > 0)) continue;
        f[j] *= factor;
        if (!(f[j] > kTiny && f[j] < 1 / kTiny)) return false;
    }
    return true;
}

// The same with log f, for scores of any size: no product can underflow.
template <PathGraph Graph>
void ForwardPass::run_in_log_space(const Graph& graph) {
    Total log_scale;
    Pace pace;
    in_log_space_ = true;
    f_[graph.start()] = 0;
    for (std::int64_t t = 0; t < graph.n_levels(); ++t) {
        const auto level = graph.level(t);
        pace.work(16 * level.n_arcs);
        double* f = f_.data() + level.node_base;
        for (std::int64_t j = level.first; j < level.last; ++j) {
            const auto arcs = level.into(j);
            f[j] = enter_in_log_space(arcs, f, place<Graph>(level, arcs));
            if (j >= level.outer) f[j] += level.node_score(j);
        }
        const double total = subtract_log_sum(level, f);
        if (total > kAbsent) log_scale.add(total);
        log_scales_[t] = log_scale.value();
    }
    log_partition_ = f_[graph.end()] > kAbsent ? log_scale.value() : kAbsent;
}

// Normalises the messages of a level in log space, so that long sequences lose no digits: subtracts
// log Σ_j f(j) over the level from all messages that are still to be used, and returns it.
template <PathLevel Level>
double ForwardPass::subtract_log_sum(const Level& level, double* f) {
    double maximum = kAbsent, mass = 0;
    for (std::int64_t j = level.outer; j < level.last; ++j) maximum = std::max(maximum, f[j]);
    if (maximum == kAbsent) return kAbsent;
    for (std::int64_t j = level.outer; j < level.last; ++j) mass += std::exp(f[j] - maximum);
    const double total = maximum + std::log(mass);
    for (std::int64_t j = level.oldest; j < level.first; ++j) f[j] -= total;
    for (std::int64_t j = level.outer; j < level.last; ++j) f[j] -= total;
    return total;
}

// back(e) of the arcs into a node, from log f of their sources. Returns log Σ_e exp(log f(src e) + score e).
template <PathArcs Arcs>
double ForwardPass::enter_in_log_space(const Arcs& arcs, const double* f, double* back) {
    double maximum = kAbsent, sum = 0;
    for (std::int64_t k = 0; k < arcs.n; ++k)
        maximum = std::max(maximum, back[k] = f[arcs.source(k)] + arcs.score(k));
    if (maximum == kAbsent) {
        std::fill(back, back + arcs.n, 0.0);
        return kAbsent;
    }
    for (std::int64_t k = 0; k < arcs.n; ++k) sum += back[k] = std::exp(back[k] - maximum);
    for (std::int64_t k = 0; k < arcs.n; ++k) back[k] /= sum;
    return maximum + std::log(sum);
}

// As it was kept, or from the messages once more.
template <class Graph, PathLevel Level, PathArcs Arcs>
const double* ForwardPass::back(const Level& level, const Arcs& arcs) {
    double* const back = place<Graph>(level, arcs);
    if constexpr (!Graph::kKeepsArcs) enter_in_log_space(arcs, f_.data() + level.node_base, back);
    return back;
}

template <PathGraph Graph>
double ForwardPass::run(const Graph& graph, bool in_log_space) {
    f_.resize(static_cast<std::size_t>(graph.n_nodes()));
    log_scales_.assign(static_cast<std::size_t>(graph.n_levels()), 0.0);
    if constexpr (Graph::kKeepsArcs) {
        back_.resize(static_cast<std::size_t>(graph.n_arcs()));
        if (!in_log_space && run_scaled(graph)) return log_partition_;
    }
    run_in_log_space(graph);
    return log_partition_;
}

}  // namespace crfkit
