// Exact answers to every question on the paths of one graph (graph.hpp), in double precision.
//
// Forward–backward in another form: one forward pass (forward.hpp) gives the partition function Z and each
// arc e its probability given the node it enters, back(e). All sums over paths need nothing else, because
// from END to START back is a Markov chain:
//   marginals       P(END) = 1,  P(e) = P(dst e) · back(e),  P(src) = Σ_e P(e)
//   entropy         −Σ_y p(y) log p(y) = Σ_j P(j) · (−Σ_{e into j} back(e) log back(e)), every term ≥ 0
//   exact samples   draw e by back(e), go to its source, until START is reached
//   spans           P(the arcs into some levels are allowed ones): the marginals' sums over allowed arcs
// The Hessian–vector product differentiates both passes. Viterbi and k-best paths: viterbi.hpp, k_best.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/compensated_sum.hpp"
#include "base/interruption.hpp"
#include "paths/forward.hpp"
#include "paths/graph.hpp"

namespace crfkit {

class PathEngine {
  public:
    // Forward pass. Returns log Z; −inf when no path is possible.
    template <PathGraph Graph>
    double log_partition(const Graph& graph, bool in_log_space = false) {
        return forward_.run(graph, in_log_space);
    }

    // Both passes: fills node_probs, and arc_probs if the graph keeps arcs. Returns log Z; when it is −inf,
    // nothing is filled and the questions below may not be asked.
    template <PathGraph Graph>
    double marginals(const Graph& graph, bool in_log_space = false);
    // The same; receive(level, j, arcs, k, P) gets the probability of each arc k into each node j.
    template <PathGraph Graph, class Receive>
    double marginals(const Graph& graph, bool in_log_space, const Receive& receive);

    // After marginals: ∇² log Z · direction, where `direction` is the same graph with directions for scores.
    // Fills node_changes and arc_changes: how the probabilities change along it.
    template <PathGraph Graph>
    void hessian_vector(const Graph& graph, const Graph& direction);
    template <PathGraph Graph, class Receive>
    void hessian_vector(const Graph& graph, const Graph& direction, const Receive& receive);

    // After marginals: −Σ_y p(y) log p(y), in nats.
    template <PathGraph Graph>
    double entropy(const Graph& graph);

    // After marginals: the probability that the path has a node of level `last` and enters levels
    // first … last by arcs for which allowed(arc) is true.
    template <PathGraph Graph, class Allowed>
    double span_probability(const Graph& graph, std::int64_t first, std::int64_t last,
                            const Allowed& allowed);

    // After log_partition: back(e) of the arcs into a node [arcs.n], good until the next call; log α(j) of a
    // node of level t that is not inner.
    template <class Graph, PathLevel Level, PathArcs Arcs>
    const double* back(const Level& level, const Arcs& arcs) {
        return forward_.back<Graph>(level, arcs);
    }
    double log_message(std::int64_t t, std::int64_t node) const { return forward_.log_message(t, node); }

    // After log_partition: takes `mass` [nodes] from the nodes of level t, inner ones too, to the sources of
    // the arcs into them: mass(src e) += mass(dst e) · back(e).
    template <PathGraph Graph>
    void move_back(const Graph& graph, std::int64_t t, std::vector<double>& mass);

    // After log_partition: n exact samples by uniforms [n, n_uniforms(graph)] in [0, 1), number t − 1 for the
    // choice of the arc into a node of level t. Calls visit(i, t, node, arc) along path i, from END to the
    // first node.
    template <PathGraph Graph>
    static std::int64_t n_uniforms(const Graph& graph) {
        return std::max<std::int64_t>(graph.n_levels() - 1, 1);
    }
    template <PathGraph Graph, class Visit>
    void sample(const Graph& graph, std::int64_t n, const double* uniforms, const Visit& visit);

    std::vector<double> node_probs, arc_probs;      // [nodes], [arcs] P
    std::vector<double> node_changes, arc_changes;  // [nodes], [arcs] dP along the direction

  private:
    template <PathGraph Graph>
    void differentiate_messages(const Graph& graph, const Graph& direction);

    ForwardPass forward_;
    std::vector<double> slope_;     // [nodes] d log f, up to a constant
    std::vector<double> arriving_;  // [nodes] d log Σ_e f(src e) exp(score e), up to the same constant
};

// From END to START: P(e) = P(dst e) · back(e), and P(j) is the sum over the arcs that leave j.
template <PathGraph Graph, class Receive>
double PathEngine::marginals(const Graph& graph, bool in_log_space, const Receive& receive) {
    const double log_z = log_partition(graph, in_log_space);
    if (log_z == kAbsent) return kAbsent;
    node_probs.assign(static_cast<std::size_t>(graph.n_nodes()), 0.0);
    node_probs[graph.end()] = 1;
    Pace pace;
    for (std::int64_t t = graph.n_levels() - 1; t >= 0; --t) {
        const auto level = graph.level(t);
        pace.work((Graph::kKeepsArcs ? 4 : 16) * level.n_arcs);
        double* probs = node_probs.data() + level.node_base;
        for (std::int64_t j = level.last; j-- > level.first;) {
            const auto arcs = level.into(j);
            const double* back = forward_.back<Graph>(level, arcs);
            const double passing = probs[j];  // final: all arcs that leave j have been added
            for (std::int64_t k = 0; k < arcs.n; ++k) {
                const double prob = passing * back[k];
                probs[arcs.source(k)] += prob;
                receive(level, j, arcs, k, prob);
            }
        }
    }
    return log_z;
}

template <PathGraph Graph>
double PathEngine::marginals(const Graph& graph, bool in_log_space) {
    if constexpr (!Graph::kKeepsArcs) {
        return marginals(graph, in_log_space, [](auto&&...) {});
    } else {
        arc_probs.resize(static_cast<std::size_t>(graph.n_arcs()));
        return marginals(graph, in_log_space,
                         [this](const auto& level, std::int64_t, const auto& arcs, std::int64_t k,
                                double prob) { arc_probs[level.arc_base + arcs.first + k] = prob; });
    }
}

// Along a direction d of the scores, u(j) = d log f(j) obeys the recursion of the messages,
//   u(j) = d score(j) + a(j),    a(j) = Σ_{e into j} back(e) · (u(src e) + d score(e)),
// which is E[d score of the path up to j | it passes j]. At each level the mean E[u] is subtracted: only
// differences of u between arcs into one node matter, and they would drown in sums over long sequences.
template <PathGraph Graph>
void PathEngine::differentiate_messages(const Graph& graph, const Graph& direction) {
    slope_.resize(node_probs.size());
    slope_[graph.start()] = 0;
    arriving_.resize(node_probs.size());
    Pace pace;
    for (std::int64_t t = 0; t < graph.n_levels(); ++t) {
        const auto level = graph.level(t);
        const auto moves = direction.level(t);
        pace.work(16 * level.n_arcs);
        double* slope = slope_.data() + level.node_base;
        const double* probs = node_probs.data() + level.node_base;
        double mean = 0;
        for (std::int64_t j = level.first; j < level.last; ++j) {
            const auto arcs = level.into(j), moved = moves.into(j);
            const double* back = forward_.back<Graph>(level, arcs);
            [[maybe_unused]] double* const kept = arc_changes.data() + level.arc_base + arcs.first;
            double sum = 0;
            for (std::int64_t k = 0; k < arcs.n; ++k) {
                const double change = slope[arcs.source(k)] + moved.score(k);
                if constexpr (Graph::kKeepsArcs) kept[k] = change;
                sum += back[k] * change;
            }
            arriving_[level.node_base + j] = sum;
            slope[j] = sum;
            if (j < level.outer) continue;
            slope[j] += moves.node_score(j);
            mean += probs[j] * slope[j];
        }
        for (std::int64_t j = level.oldest; j < level.first; ++j) slope[j] -= mean;
        for (std::int64_t j = level.outer; j < level.last; ++j) slope[j] -= mean;
    }
}

// With u(e) = u(src e) + d score(e):  d back(e) = back(e) (u(e) − a(dst e)), so that from END to START
//   dP(END) = 0,  dP(e) = dP(dst) back(e) + P(dst) d back(e) = back(e) (dP(dst) + P(dst) (u(e) − a(dst))),
// and dP(src) is the sum over the arcs that leave it.
template <PathGraph Graph, class Receive>
void PathEngine::hessian_vector(const Graph& graph, const Graph& direction, const Receive& receive) {
    if constexpr (Graph::kKeepsArcs) arc_changes.resize(graph.n_arcs());  // holds u(e) between the passes
    differentiate_messages(graph, direction);
    node_changes.assign(node_probs.size(), 0.0);
    Pace pace;
    for (std::int64_t t = graph.n_levels() - 1; t >= 0; --t) {
        const auto level = graph.level(t);
        const auto moves = direction.level(t);
        pace.work(16 * level.n_arcs);
        double* changes = node_changes.data() + level.node_base;
        const double* slope = slope_.data() + level.node_base;
        for (std::int64_t j = level.last; j-- > level.first;) {
            const auto arcs = level.into(j), moved = moves.into(j);
            const double* back = forward_.back<Graph>(level, arcs);
            const double prob = node_probs[level.node_base + j], moving = changes[j];
            const double mean = arriving_[level.node_base + j];
            for (std::int64_t k = 0; k < arcs.n; ++k) {
                double change;
                if constexpr (Graph::kKeepsArcs)
                    change = arc_changes[level.arc_base + arcs.first + k];
                else
                    change = slope[arcs.source(k)] + moved.score(k);
                change = back[k] * (moving + prob * (change - mean));
                changes[arcs.source(k)] += change;
                receive(level, j, arcs, k, change);
            }
        }
    }
}

template <PathGraph Graph>
void PathEngine::hessian_vector(const Graph& graph, const Graph& direction) {
    hessian_vector(graph, direction,
                   [this](const auto& level, std::int64_t, const auto& arcs, std::int64_t k, double change) {
                       if constexpr (Graph::kKeepsArcs) arc_changes[level.arc_base + arcs.first + k] = change;
                   });
}

// The chain rule of entropy along the Markov chain from END to START: Σ_j P(j) · H(arc into j | j).
template <PathGraph Graph>
double PathEngine::entropy(const Graph& graph) {
    Total total;
    Pace pace;
    for (std::int64_t t = 0; t < graph.n_levels(); ++t) {
        const auto level = graph.level(t);
        pace.work(32 * level.n_arcs);
        for (std::int64_t j = level.first; j < level.last; ++j) {
            const double prob = node_probs[level.node_base + j];
            if (prob <= 0) continue;
            const auto arcs = level.into(j);
            const double* back = forward_.back<Graph>(level, arcs);
            for (std::int64_t k = 0; k < arcs.n; ++k)
                if (back[k] > 0) total.add(-prob * back[k] * std::log(back[k]));
        }
    }
    return std::max(0.0, total.value());
}

// q(j) = P(the path passes j and goes on from there as allowed): q = P at level `last`, and from there down
//   q(e) = q(dst e) · back(e) for allowed arcs,  q(src) = Σ_e q(e),
// until the arcs come from a level before `first`.
template <PathGraph Graph, class Allowed>
double PathEngine::span_probability(const Graph& graph, std::int64_t first, std::int64_t last,
                                    const Allowed& allowed) {
    std::vector<double> passing(node_probs.size(), 0.0);
    double total = 0;
    Pace pace;
    for (std::int64_t t = last; t >= first; --t) {
        const auto level = graph.level(t);
        pace.work(16 * level.n_arcs);
        double* q = passing.data() + level.node_base;
        if (t == last)
            for (std::int64_t j = level.outer; j < level.last; ++j) q[j] = node_probs[level.node_base + j];
        for (std::int64_t j = level.last; j-- > level.first;) {
            if (q[j] <= 0) continue;
            const auto arcs = level.into(j);
            const double* back = forward_.back<Graph>(level, arcs);
            for (std::int64_t k = 0; k < arcs.n; ++k) {
                if (!allowed(level.arc_base + arcs.first + k)) continue;
                const std::int64_t source = arcs.source(k);
                (level.level_of(source) < first ? total : q[source]) += q[j] * back[k];
            }
        }
    }
    return total;
}

template <PathGraph Graph>
void PathEngine::move_back(const Graph& graph, std::int64_t t, std::vector<double>& mass) {
    const auto level = graph.level(t);
    double* q = mass.data() + level.node_base;
    Pace pace;
    for (std::int64_t j = level.last; j-- > level.first;) {
        if (q[j] <= 0) continue;
        const auto arcs = level.into(j);
        pace.work((Graph::kKeepsArcs ? 4 : 16) * arcs.n);
        const double* back = forward_.back<Graph>(level, arcs);
        const double moved = std::exchange(q[j], 0.0);
        for (std::int64_t k = 0; k < arcs.n; ++k) q[arcs.source(k)] += moved * back[k];
    }
}

// One uniform number serves all draws within a level, and those at level 0 that follow: what is left of it
// after a draw is uniform again.
template <PathGraph Graph, class Visit>
void PathEngine::sample(const Graph& graph, std::int64_t n, const double* uniforms, const Visit& visit) {
    // The first arc at which the sum exceeds u; the last possible one when rounding leaves a rest.
    const auto draw = [](const double* probs, std::int64_t n_arcs, double& u) {
        std::int64_t chosen = 0;
        for (std::int64_t k = 0; k < n_arcs; ++k) {
            if (probs[k] <= 0) continue;
            chosen = k;
            if (u < probs[k]) break;
            u -= probs[k];
        }
        u = std::min(u / probs[chosen], 1.0);  // above 1 where rounding left a rest
        return chosen;
    };
    Pace pace;
    for (std::int64_t i = 0; i < n; ++i, uniforms += n_uniforms(graph)) {
        double u = uniforms[0];
        for (std::int64_t t = graph.n_levels() - 1, node = graph.end(); t >= 0;) {
            const auto level = graph.level(t);
            if (t > 0) u = uniforms[t - 1];
            std::int64_t from = t;
            while (from == t) {
                const auto arcs = level.into(node - level.node_base);
                pace.work((Graph::kKeepsArcs ? 4 : 16) * arcs.n);
                const std::int64_t k = draw(forward_.back<Graph>(level, arcs), arcs.n, u);
                visit(i, t, node, level.arc_base + arcs.first + k);
                from = level.level_of(arcs.source(k));
                node = level.node_base + arcs.source(k);
            }
            t = from;
        }
    }
}

}  // namespace crfkit
