// The outputs of a structure as the hyperpaths of a directed acyclic hypergraph: what paths/graph.hpp is for
// sequences, for outputs that branch.
//
// A hyperedge leads from at most two nodes, its tails, to one node, its head, and has a score. The hyperpaths
// of a node are made of one edge into it and of one hyperpath of each tail of that edge. Every output y is
// exactly one hyperpath of the goal, and
//   score(y) = Σ over its edges, as often as they are used (score of the edge).
// A score of −inf means absent. Projective trees, sibling spans and constituents differ only in their
// hypergraph; HyperpathEngine (engine.hpp), viterbi.hpp and k_best.hpp answer every question on all of them.
//
// Nodes 0, 1, …, n_nodes − 1 stand in topological order: tails have lower numbers than heads. The last node
// is the goal. A node without edges has no hyperpath.
//
// Edges have numbers, under which probabilities are given and directions of scores read. An edge whose score
// is 0 and which stands for no part of an output may be kUnnumbered.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

#include "base/wide.hpp"

namespace crfkit {

// A tail that an edge does not have. It is the last tail of its edge.
inline constexpr std::int64_t kNoTail = -1;

inline constexpr std::int64_t kUnnumbered = -1;

// The edges into one node: k = 0 … n − 1.
template <class Edges>
concept HyperedgesIn = requires(const Edges& edges, std::int64_t k) {
    { edges.n } -> std::convertible_to<std::int64_t>;
    { edges.number(k) } -> std::convertible_to<std::int64_t>;
    { edges.left(k) } -> std::convertible_to<std::int64_t>;
    { edges.right(k) } -> std::convertible_to<std::int64_t>;
    { edges.score(k) } -> std::same_as<double>;
    { edges.weight(k) } -> std::same_as<Wide>;  // exp(score)
};

template <class Graph>
concept HyperpathGraph = requires(const Graph& graph, std::int64_t node) {
    { graph.n_nodes() } -> std::convertible_to<std::int64_t>;
    { graph.into(node) } -> HyperedgesIn;
};

}  // namespace crfkit
