// The outputs of a structure as the paths of a directed acyclic graph.
//
// Every output y is exactly one path from START to END, and
//   score(y) = Σ over its arcs (score of the arc) + Σ over its nodes (score of the node, the emission).
// A score of −inf means absent. Dense chains, lattices, pattern trellises, segments and word lattices differ
// only in their graph; PathEngine (engine.hpp), viterbi and KBestPaths answer every question on all of them.
//
// Nodes come in levels 0, 1, …, n_levels − 1, in topological order; START comes before level 0, and END is
// the only node of the last level. In a structure with one label per position, level t holds the nodes of
// position t and END is level T. The arcs that enter a node are numbered one after the other. An arc may
//   - come from the level before, as in a chain;
//   - come from any earlier level, or from START: arcs of segments and of word lattices jump over levels;
//   - come from an inner node of its own level: inner nodes have no score and are left in their own level.
//
// A level counts its nodes and arcs from `node_base` and `arc_base`, so that equal levels can share one
// table: local node k is node node_base + k of the graph, and may belong to an earlier level.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

namespace crfkit {

// The score of what does not exist.
inline constexpr double kAbsent = -std::numeric_limits<double>::infinity();

// The arcs that enter one node: k = 0 … n − 1.
template <class Arcs>
concept PathArcs = requires(const Arcs& arcs, std::int64_t k) {
    { arcs.n } -> std::convertible_to<std::int64_t>;
    { arcs.first } -> std::convertible_to<std::int64_t>;  // arc k is arc arc_base + first + k of the graph
    { arcs.source(k) } -> std::convertible_to<std::int64_t>;  // local number of the node it leaves
    { arcs.score(k) } -> std::same_as<double>;
};
// What scaled messages need as well: exp(score − arc_maximum of the level).
template <class Arcs>
concept WeightedArcs = PathArcs<Arcs> && requires(const Arcs& arcs, std::int64_t k) {
    { arcs.weight(k) } -> std::same_as<double>;
};

template <class Level>
concept PathLevel = requires(const Level& level, std::int64_t j) {
    { level.node_base } -> std::convertible_to<std::int64_t>;
    { level.arc_base } -> std::convertible_to<std::int64_t>;
    // The nodes of the level are first … last − 1 in local numbers, the inner ones before `outer`.
    { level.first } -> std::convertible_to<std::int64_t>;
    { level.outer } -> std::convertible_to<std::int64_t>;
    { level.last } -> std::convertible_to<std::int64_t>;
    // Of earlier nodes, only oldest … first − 1 have arcs that lead past this level; `first`: none has.
    { level.oldest } -> std::convertible_to<std::int64_t>;
    { level.n_arcs } -> std::convertible_to<std::int64_t>;       // all that enter its nodes
    { level.arc_maximum } -> std::convertible_to<double>;        // what `weight` has subtracted, once a path
    { level.node_score(j) } -> std::same_as<double>;             // of nodes that are not inner
    { level.level_of(j) } -> std::convertible_to<std::int64_t>;  // of a source; −1: START
    { level.into(j) } -> PathArcs;
};

template <class Graph>
concept PathGraph = requires(const Graph& graph, std::int64_t t) {
    { graph.n_levels() } -> std::convertible_to<std::int64_t>;
    { graph.n_nodes() } -> std::convertible_to<std::int64_t>;  // with START and END
    { graph.n_arcs() } -> std::convertible_to<std::int64_t>;
    { graph.start() } -> std::convertible_to<std::int64_t>;
    { graph.end() } -> std::convertible_to<std::int64_t>;
    { graph.level(t) } -> PathLevel;
    // Whether the engine may keep a number for each arc. A graph with too many arcs says no: it is answered
    // in log space, from the messages of nodes alone, and its arcs must come from the level before.
    { Graph::kKeepsArcs } -> std::convertible_to<bool>;
};

}  // namespace crfkit
