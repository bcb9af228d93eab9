// A lattice with scores as a path graph (paths/graph.hpp): level t holds the candidates of position t.
#pragma once

#include <cstdint>
#include <span>

#include "lattice/lattice.hpp"
#include "paths/graph.hpp"

namespace crfkit {

// Nodes and arcs have the numbers of the lattice. START is node n_nodes, END is node n_nodes + 1; the arcs
// from START and into END score 0 and come after all others.
class LatticeGraph {
  public:
    // scores [nodes]: −inf closes a node. All must outlive the graph.
    LatticeGraph(const Lattice& lattice, const ArcScores& arcs, std::span<const double> scores)
        : LatticeGraph(lattice, arcs.scores, scores) {
        weights_ = arcs.weights.data();
        arc_maximum_ = arcs.maximum;
        unlisted_ = arcs.unlisted;
    }
    // A direction of scores, for listed arcs and for nodes.
    LatticeGraph(const Lattice& lattice, std::span<const double> arcs, std::span<const double> nodes)
        : lattice_(lattice), nodes_(nodes.data()), scores_(arcs.data()) {}

    struct Arcs {
        std::int64_t n, first;
        const std::int32_t *sources, *numbers;  // number among the listed arcs; −1: not listed
        const double *scores, *weights;
        double unlisted;

        std::int64_t source(std::int64_t k) const { return sources[k]; }
        double score(std::int64_t k) const { return numbers[k] >= 0 ? scores[numbers[k]] : 0.0; }
        double weight(std::int64_t k) const { return numbers[k] >= 0 ? weights[numbers[k]] : unlisted; }
    };
    struct Level {
        const std::int64_t* in;
        const std::int32_t *sources, *numbers;
        const double *nodes, *scores, *weights;
        double unlisted, arc_maximum;
        std::int64_t before, node_base, arc_base, first, last, n_arcs;
        std::int64_t outer = first, oldest = first;

        double node_score(std::int64_t j) const { return nodes[j]; }
        std::int64_t level_of(std::int64_t) const { return before; }
        Arcs into(std::int64_t j) const {
            const std::int64_t e = in[j];
            return {in[j + 1] - e, e, sources + e, numbers + e, scores, weights, unlisted};
        }
    };

    static constexpr bool kKeepsArcs = true;
    std::int64_t n_levels() const { return lattice_.n_positions() + 1; }
    std::int64_t n_nodes() const { return lattice_.n_nodes() + 2; }
    std::int64_t n_arcs() const { return lattice_.n_arcs() + lattice_.bounds.n_arcs(); }
    std::int64_t start() const { return lattice_.n_nodes(); }
    std::int64_t end() const { return lattice_.n_nodes() + 1; }
    Level level(std::int64_t t) const {
        const Lattice& at = lattice_;
        const BoundaryArcs& bounds = at.bounds;
        const std::int64_t n_first = at.position_ptr[1], T = at.n_positions();
        if (t > 0 && t < T)
            return {at.in_ptr.data(),
                    at.from.data(),
                    at.arc.data(),
                    nodes_,
                    scores_,
                    weights_,
                    unlisted_,
                    arc_maximum_,
                    t - 1,
                    0,
                    0,
                    at.position_ptr[t],
                    at.position_ptr[t + 1],
                    at.n_arcs_into(t)};
        const std::int64_t* in = bounds.in_ptr.data();
        const std::int32_t *from = bounds.from.data(), *arc = bounds.arc.data();
        if (t == 0)
            return {in, from, arc, nodes_, scores_, weights_, 1, 0, -1, 0, at.n_arcs(), 0, n_first, n_first};
        return {in + n_first,
                from,
                arc,
                &kEndScore,
                scores_,
                weights_,
                1,
                0,
                T - 1,
                end(),
                at.n_arcs(),
                0,
                1,
                bounds.n_arcs() - n_first};
    }

    std::int32_t label(std::int64_t t, std::int64_t node) const {
        return t < lattice_.n_positions() ? lattice_.labels[node] : -1;
    }

  private:
    static constexpr double kEndScore = 0;

    const Lattice& lattice_;
    const double *nodes_, *scores_, *weights_ = nullptr;
    double arc_maximum_ = 0, unlisted_ = 0;
};

}  // namespace crfkit
