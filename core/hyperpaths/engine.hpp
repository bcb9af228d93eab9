// Exact answers to every question on the hyperpaths of one graph (graph.hpp), in double precision.
//
// Inside–outside in another form: one inside pass (inside.hpp) gives the partition function Z and each edge e
// its probability given its head, given(e). All sums over hyperpaths need nothing else, because from the goal
// down to the tails given is a branching process:
//   marginals       P(goal) = 1,  P(e) = P(head e) · given(e),  P(v) = Σ over the edges e with tail v of P(e)
//   entropy         −Σ_y p(y) log p(y) = Σ_v P(v) · (−Σ_{e into v} given(e) log given(e)), every term ≥ 0
//   exact samples   draw e into the goal by given(e), then into each of its tails
// P is the expected number of uses, a probability where no hyperpath uses a node twice. The outside sums are
// never formed: P is at most the number of uses, whatever the scores. The Hessian–vector product
// differentiates both passes. Viterbi and k-best hyperpaths: viterbi.hpp, k_best.hpp.
//
// Usage, with the memory of `graph` and `engine` reused from sentence to sentence:
//   graph.clear();
//   graph.add_edge(left, right, score); …; node = graph.add_node();   // array_hypergraph.hpp
//   graph.weigh();
//   const double log_z = engine.marginals(graph, [&](std::int64_t edge, double prob) { … });
//   double score = viterbi(graph, workspace, [&](std::int64_t node, std::int64_t edge) { … });
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/interruption.hpp"
#include "hyperpaths/graph.hpp"
#include "hyperpaths/inside.hpp"

namespace crfkit {

class HyperpathEngine {
  public:
    // Inside pass. Returns log Z; −inf when there is no hyperpath.
    template <HyperpathGraph Graph>
    double log_partition(const Graph& graph) {
        return inside_.run(graph);
    }

    // Both passes: receive(e, P) gets the probability of each numbered edge where it is not 0, from the goal
    // on. Returns log Z; when it is −inf, nothing is received and the questions below may not be asked.
    template <HyperpathGraph Graph, class Receive>
    double marginals(const Graph& graph, const Receive& receive);

    // After marginals: ∇² log Z · direction, where direction(e) is that of the score of a numbered edge.
    // receive(e, dP) gets how the probability of each such edge changes along it, where it is not 0.
    template <HyperpathGraph Graph, class Direction, class Receive>
    void hessian_vector(const Graph& graph, const Direction& direction, const Receive& receive);

    // After marginals: −Σ_y p(y) log p(y), in nats.
    template <HyperpathGraph Graph>
    double entropy(const Graph& graph);

    // After log_partition: one exact sample. uniform() is a uniform number in [0, 1), asked for once for each
    // node of the hyperpath that has several edges. Calls visit(node, e) along it, with the numbers of edges:
    // heads before tails, left before right.
    template <HyperpathGraph Graph, class Uniform, class Visit>
    void sample(const Graph& graph, const Uniform& uniform, const Visit& visit);

    const double* node_probs() const { return node_probs_.data() + 1; }  // [nodes] P, after marginals

  private:
    // [1 + nodes], the first for tails that do not exist: fills with 0, and returns where node 0 is.
    static double* clear(std::vector<double>& numbers, std::int64_t n_nodes) {
        numbers.assign(static_cast<std::size_t>(n_nodes) + 1, 0.0);
        return numbers.data() + 1;
    }

    InsidePass inside_;
    std::vector<double> node_probs_;        // [1 + nodes] P(v)
    std::vector<double> slopes_, changes_;  // [1 + nodes] d log I(v), dP(v)
    std::vector<std::int64_t> open_;        // nodes of a sample whose edge is not drawn yet
};

template <HyperpathGraph Graph, class Receive>
double HyperpathEngine::marginals(const Graph& graph, const Receive& receive) {
    const double log_z = log_partition(graph);
    if (log_z == -HUGE_VAL) return log_z;
    const std::int64_t n = graph.n_nodes();
    double* const probs = clear(node_probs_, n);
    probs[n - 1] = 1;
    Pace pace;
    for (std::int64_t node = n - 1; node >= 0; --node) {
        const double passing = probs[node];  // final: all edges with this tail have been added
        if (!(passing > 0)) continue;
        const auto edges = graph.into(node);
        pace.work(4 * edges.n);
        const auto given = inside_.given(node);
        for (std::int64_t k = 0; k < edges.n; ++k) {
            const std::int64_t left = edges.left(k), right = edges.right(k);
            const double prob = passing * given(left, right, edges.weight(k));
            probs[left] += prob;
            probs[right] += prob;
            if (edges.number(k) >= 0) receive(edges.number(k), prob);
        }
    }
    return log_z;
}

// Along a direction d of the scores, u(v) = d log I(v) = Σ_{e into v} given(e) · a(e), where
//   a(e) = d score(e) + u(left e) + u(right e)
// is E[d score of the hyperpath of v | it begins with e]. Then d given(e) = given(e) · (a(e) − u(v)), and
//   dP(e) = dP(v) · given(e) + P(v) · d given(e),   dP(v) = Σ over the edges e with tail v of dP(e).
template <HyperpathGraph Graph, class Direction, class Receive>
void HyperpathEngine::hessian_vector(const Graph& graph, const Direction& direction, const Receive& receive) {
    const std::int64_t n = graph.n_nodes();
    const double* const probs = node_probs();
    double *const slopes = clear(slopes_, n), *const changes = clear(changes_, n);
    const auto slope_of = [&](const auto& edges, std::int64_t k) {
        const double moved = edges.number(k) >= 0 ? direction(edges.number(k)) : 0.0;
        return moved + slopes[edges.left(k)] + slopes[edges.right(k)];
    };
    Pace pace;
    for (std::int64_t node = 0; node < n; ++node) {
        if (!(probs[node] > 0)) continue;
        const auto edges = graph.into(node);
        pace.work(8 * edges.n);
        const auto given = inside_.given(node);
        for (std::int64_t k = 0; k < edges.n; ++k) {
            const double prob = given(edges.left(k), edges.right(k), edges.weight(k));
            if (prob > 0) slopes[node] += prob * slope_of(edges, k);
        }
    }
    for (std::int64_t node = n - 1; node >= 0; --node) {
        const double passing = probs[node];
        if (!(passing > 0)) continue;
        const auto edges = graph.into(node);
        pace.work(8 * edges.n);
        const auto given = inside_.given(node);
        for (std::int64_t k = 0; k < edges.n; ++k) {
            const std::int64_t left = edges.left(k), right = edges.right(k);
            const double prob = given(left, right, edges.weight(k));
            if (!(prob > 0)) continue;
            const double change = prob * (changes[node] + passing * (slope_of(edges, k) - slopes[node]));
            changes[left] += change;
            changes[right] += change;
            if (edges.number(k) >= 0) receive(edges.number(k), change);
        }
    }
}

template <HyperpathGraph Graph>
double HyperpathEngine::entropy(const Graph& graph) {
    double entropy = 0;
    Pace pace;
    for (std::int64_t node = 0; node < graph.n_nodes(); ++node) {
        if (!(node_probs()[node] > 0)) continue;
        const auto edges = graph.into(node);
        pace.work(16 * edges.n);
        const auto given = inside_.given(node);
        double local = 0;
        for (std::int64_t k = 0; k < edges.n; ++k) {
            const double prob = given(edges.left(k), edges.right(k), edges.weight(k));
            if (prob > 0 && prob < 1) local -= prob * std::log(prob);
        }
        entropy += node_probs()[node] * local;
    }
    return entropy;
}

template <HyperpathGraph Graph, class Uniform, class Visit>
void HyperpathEngine::sample(const Graph& graph, const Uniform& uniform, const Visit& visit) {
    open_.assign(1, graph.n_nodes() - 1);
    Pace pace;
    while (!open_.empty()) {
        const std::int64_t node = open_.back();
        open_.pop_back();
        const auto edges = graph.into(node);
        pace.work(8 * edges.n);
        const auto given = inside_.given(node);
        double u = edges.n > 1 ? uniform() : 0.0;
        std::int64_t chosen = 0;  // the first edge at which the sum exceeds u, or the last possible one
        for (std::int64_t k = 0; k < edges.n; ++k) {
            const double prob = given(edges.left(k), edges.right(k), edges.weight(k));
            if (!(prob > 0)) continue;
            chosen = k;
            if (u < prob) break;
            u -= prob;
        }
        visit(node, static_cast<std::int64_t>(edges.number(chosen)));
        if (edges.right(chosen) >= 0) open_.push_back(edges.right(chosen));
        if (edges.left(chosen) >= 0) open_.push_back(edges.left(chosen));
    }
}

}  // namespace crfkit
