// Graphs in arrays: their shape, the same with scores, and any directed acyclic graph that is given arc by
// arc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "paths/graph.hpp"

namespace crfkit {

// The nodes and arcs of a graph. Nodes stand in the order of their levels, inner ones first in each; START is
// node 0, END is the last node and the only one of the last level. Arcs stand in the order of the nodes they
// enter.
//
// A path that passes an inner node has two arcs into one level. One of them is silent: it scores 0, and the
// other alone stands for the step into the level.
struct PathShape {
    std::vector<std::int64_t> level_ptr;  // [levels + 1] the nodes of each level
    std::vector<std::int64_t> outer;      // [levels] the first node that is not inner; empty: none is inner
    std::vector<std::int64_t> level_of;   // [nodes] −1: START
    std::vector<std::int64_t> oldest;     // [levels] as in PathLevel
    std::vector<std::int64_t> in_ptr;     // [nodes + 1] the arcs into each node
    std::vector<std::int64_t> source;     // [arcs]
    std::vector<std::uint8_t> silent;     // [arcs] empty: none is silent

    std::int64_t n_levels() const { return static_cast<std::int64_t>(level_ptr.size()) - 1; }
    std::int64_t n_nodes() const { return static_cast<std::int64_t>(level_of.size()); }
    std::int64_t n_arcs() const { return static_cast<std::int64_t>(source.size()); }
    // Fills `oldest` from all the rest.
    void find_oldest();
};

// Nodes 0 (START), 1, …, n_nodes − 1 (END), as they are given, stand in topological order. Inside, they are
// sorted by level, one more than the highest level that an arc comes from, and arcs by the node they enter;
// `node_order` and `arc_order` tell which given ones they are. END has a level of its own, the last.
class ArrayGraph : public PathShape {
  public:
    // Arc e leads from sources[e] to targets[e]. Throws std::invalid_argument unless source < target.
    ArrayGraph(std::int64_t n_nodes, std::span<const std::int64_t> sources,
               std::span<const std::int64_t> targets);

    std::vector<std::int64_t> node_order, arc_order;  // [nodes], [arcs] given number of each

  private:
    std::vector<std::int64_t> sort_nodes(std::span<const std::int64_t> sources,
                                         std::span<const std::int64_t> targets);
    void sort_arcs(std::span<const std::int64_t> sources, std::span<const std::int64_t> targets,
                   const std::vector<std::int64_t>& place);
};

// A shape with scores of its arcs and nodes, or with a direction of such scores.
class ScoredArrayGraph {
  public:
    // scores [arcs] in the order in which the arcs were given; −inf: absent. Nodes have none. `graph` must
    // outlive it.
    ScoredArrayGraph(const ArrayGraph& graph, std::span<const double> scores);
    // arcs [arcs], nodes [nodes] in the order of the shape. The shape must outlive it, and scores that are
    // not handed over.
    ScoredArrayGraph(const PathShape& shape, std::span<const double> arcs, std::span<const double> nodes);
    ScoredArrayGraph(const PathShape& shape, std::vector<double>&& arcs, std::vector<double>&& nodes);
    ScoredArrayGraph(ScoredArrayGraph&&) = default;

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
        std::int64_t first, outer, last, oldest, n_arcs;
        double arc_maximum;
        std::int64_t node_base = 0, arc_base = 0;

        double node_score(std::int64_t j) const { return scored.nodes_.empty() ? 0.0 : scored.nodes_[j]; }
        std::int64_t level_of(std::int64_t j) const { return scored.shape_.level_of[j]; }
        Arcs into(std::int64_t j) const {
            const PathShape& shape = scored.shape_;
            const std::int64_t e = shape.in_ptr[j];
            return {shape.in_ptr[j + 1] - e, e, shape.source.data() + e, scored.arcs_.data() + e,
                    scored.weights_.data() + e};
        }
    };

    static constexpr bool kKeepsArcs = true;
    std::int64_t n_levels() const { return shape_.n_levels(); }
    std::int64_t n_nodes() const { return shape_.n_nodes(); }
    std::int64_t n_arcs() const { return shape_.n_arcs(); }
    std::int64_t start() const { return 0; }
    std::int64_t end() const { return shape_.n_nodes() - 1; }
    Level level(std::int64_t t) const {
        const std::int64_t first = shape_.level_ptr[t], last = shape_.level_ptr[t + 1];
        return {*this,
                first,
                shape_.outer.empty() ? first : shape_.outer[t],
                last,
                shape_.oldest[t],
                shape_.in_ptr[last] - shape_.in_ptr[first],
                maxima_[t]};
    }
    std::int32_t given_arc(std::int64_t arc) const {
        return static_cast<std::int32_t>(order_ ? (*order_)[arc] : arc);
    }

  private:
    void exponentiate();

    const PathShape& shape_;
    const std::vector<std::int64_t>* order_ = nullptr;  // [arcs] given number of each; null: the same
    std::vector<double> own_arcs_, own_nodes_;
    std::span<const double> arcs_;   // [arcs]
    std::span<const double> nodes_;  // [nodes] empty: all 0
    std::vector<double> weights_;    // [arcs]
    std::vector<double> maxima_;     // [levels]
};

}  // namespace crfkit
