// A dense chain as a path graph (paths/graph.hpp): level t holds all labels of position t.
#pragma once

#include <cstdint>

#include "paths/graph.hpp"

namespace crfkit {

// Scores of one chain. Start and end scores and allowed labels are folded into the states of the first and
// the last position.
struct ChainView {
    std::int64_t n_positions;  // T
    std::int32_t n_labels;     // L
    const double* states;      // [T, L]
    const double* arcs;        // [L, L] or [T − 1, L, L]
    bool arcs_by_position;

    const double* state(std::int64_t t) const { return states + t * n_labels; }
    // The arcs into position t ≥ 1.
    const double* arcs_into(std::int64_t t) const {
        return arcs_by_position ? arcs + (t - 1) * n_labels * n_labels : arcs;
    }
};

// START is node 0, label b at position t node 1 + t L + b, and END the last one. A level counts from the
// nodes of the level before. T L² arcs are too many to be kept.
class ChainGraph {
  public:
    explicit ChainGraph(const ChainView& chain) : chain_(chain) {}

    struct Arcs {
        std::int64_t n, first;
        const double* scores;  // a column of the table of arcs
        std::int64_t stride;

        std::int64_t source(std::int64_t k) const { return k; }
        double score(std::int64_t k) const { return scores[k * stride]; }
    };
    struct Level {
        std::int64_t t, node_base, arc_base, first, last;
        const double *nodes, *arcs;
        std::int64_t stride, n_arcs = first * (last - first), outer = first, oldest = first;
        double arc_maximum = 0;

        double node_score(std::int64_t j) const { return nodes[j - first]; }
        std::int64_t level_of(std::int64_t) const { return t - 1; }
        Arcs into(std::int64_t j) const {
            return {first, (j - first) * first, stride ? arcs + (j - first) : arcs, stride};
        }
    };

    static constexpr bool kKeepsArcs = false;
    std::int64_t n_levels() const { return chain_.n_positions + 1; }
    std::int64_t n_nodes() const { return chain_.n_positions * chain_.n_labels + 2; }
    std::int64_t n_arcs() const {
        const std::int64_t T = chain_.n_positions, L = chain_.n_labels;
        return T == 0 ? 1 : (T - 1) * L * L + 2 * L;
    }
    std::int64_t start() const { return 0; }
    std::int64_t end() const { return n_nodes() - 1; }
    Level level(std::int64_t t) const {
        const std::int64_t T = chain_.n_positions, L = chain_.n_labels;
        const std::int64_t before = t == 0 ? 1 : L, after = t == T ? 1 : L;
        const std::int64_t node_base = t == 0 ? 0 : 1 + (t - 1) * L,
                           arc_base = t == 0 ? 0 : L + (t - 1) * L * L;
        const double* nodes = t == T ? &kNothing : chain_.state(t);
        if (t == 0 || t == T) return {t, node_base, arc_base, before, before + after, nodes, &kNothing, 0};
        return {t, node_base, arc_base, before, before + after, nodes, chain_.arcs_into(t), L};
    }
    std::int32_t label(std::int64_t t, std::int64_t node) const {
        if (t == chain_.n_positions) return -1;
        return static_cast<std::int32_t>(node - 1 - t * chain_.n_labels);
    }

  private:
    static constexpr double kNothing = 0;  // the score of END, and of arcs from START and into END

    const ChainView& chain_;
};

}  // namespace crfkit
