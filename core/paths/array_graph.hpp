// A graph that is given arc by arc: any directed acyclic graph from START to END.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "paths/graph.hpp"

namespace crfkit {

// Nodes 0 (START), 1, …, n_nodes − 1 (END), as they are given, stand in topological order. Inside, they are
// sorted by level, one more than the highest level that an arc comes from, and arcs by the node they enter;
// `node_order` and `arc_order` tell which given ones they are. END has a level of its own, the last.
class ArrayGraph {
  public:
    // Arc e leads from sources[e] to targets[e]. Throws std::invalid_argument unless source < target.
    ArrayGraph(std::int64_t n_nodes, std::span<const std::int64_t> sources,
               std::span<const std::int64_t> targets);

    std::int64_t n_levels() const { return static_cast<std::int64_t>(level_ptr.size()) - 1; }
    std::int64_t n_nodes() const { return static_cast<std::int64_t>(node_order.size()); }
    std::int64_t n_arcs() const { return static_cast<std::int64_t>(arc_order.size()); }

    std::vector<std::int64_t> node_order, arc_order;  // [nodes], [arcs] given number of each
    std::vector<std::int64_t> level_ptr;              // [levels + 1] the nodes of each level
    std::vector<std::int64_t> level_of;               // [nodes] −1: START
    std::vector<std::int64_t> oldest;                 // [levels] as in PathLevel
    std::vector<std::int64_t> in_ptr;                 // [nodes + 1] the arcs into each node
    std::vector<std::int64_t> source;                 // [arcs]

  private:
    std::vector<std::int64_t> sort_nodes(std::span<const std::int64_t> sources,
                                         std::span<const std::int64_t> targets);
    void sort_arcs(std::span<const std::int64_t> sources, std::span<const std::int64_t> targets,
                   const std::vector<std::int64_t>& place);
};

// The same with scores of its arcs, or with a direction of such scores. Nodes have none.
class ScoredArrayGraph {
  public:
    // scores [arcs] in the order in which the arcs were given; −inf: absent. `graph` must outlive it.
    ScoredArrayGraph(const ArrayGraph& graph, std::span<const double> scores);

    struct Arcs {
        std::int64_t n, first;
        const std::int64_t* sources;
        const double *scores, *weights;

        std::int64_t source(std::int64_t k) const { return sources[k]; }
        double score(std::int64_t k) const { return scores[k]; }
        double weight(std::int64_t k) const { return weights[k]; }
    };
    struct Level {
        const ScoredArrayGraph& scored;
        std::int64_t first, last, oldest, n_arcs;
        double arc_peak;
        std::int64_t outer = first, node_base = 0, arc_base = 0;

        double node_score(std::int64_t) const { return 0; }
        std::int64_t level_of(std::int64_t j) const { return scored.graph_.level_of[j]; }
        Arcs into(std::int64_t j) const {
            const ArrayGraph& graph = scored.graph_;
            const std::int64_t e = graph.in_ptr[j];
            return {graph.in_ptr[j + 1] - e, e, &graph.source[e], &scored.scores_[e], &scored.weights_[e]};
        }
    };

    static constexpr bool kKeepsArcs = true;
    std::int64_t n_levels() const { return graph_.n_levels(); }
    std::int64_t n_nodes() const { return graph_.n_nodes(); }
    std::int64_t n_arcs() const { return graph_.n_arcs(); }
    std::int64_t start() const { return 0; }
    std::int64_t end() const { return graph_.n_nodes() - 1; }
    Level level(std::int64_t t) const {
        const std::int64_t first = graph_.level_ptr[t], last = graph_.level_ptr[t + 1];
        return {*this, first, last, graph_.oldest[t], graph_.in_ptr[last] - graph_.in_ptr[first], peaks_[t]};
    }

  private:
    const ArrayGraph& graph_;
    std::vector<double> scores_, weights_;  // [arcs] sorted
    std::vector<double> peaks_;             // [levels]
};

}  // namespace crfkit
