// One sequence with patterns as a path graph (paths/graph.hpp): its label sequences are the paths of a
// trellis, and level t is the end of step t. Pools are the inner nodes of a level.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "paths/graph.hpp"
#include "patterns/step_scores.hpp"
#include "patterns/trellis.hpp"

namespace crfkit {

// One sequence with its scores, or with a direction of such scores. T ≥ 1.
struct ScoredTrellis {
    const StepTable& table;
    std::span<const std::int32_t> steps;  // [T + 1]
    std::int32_t n_labels;
    const double* states;  // [T, L] −inf closes a label
    const StepScores& arcs;
    bool weighted;  // whether a question may need the exponentials of arcs, which then are there. Others
                    // never look at them: another thread may be computing them.

    std::int64_t n_positions() const { return static_cast<std::int64_t>(steps.size()) - 1; }
    const Step& step(std::int64_t t) const { return table.steps[steps[t]]; }
};

// Where the nodes and arcs of each step stand among those of a sequence: step t has its nodes from
// node_begin[t] on, in its own numbers (the nodes after it are those before the next), and its arcs from
// arc_begin[t] on.
struct TrellisPlaces {
    std::vector<std::int64_t> node_begin, arc_begin;  // [T + 2]
};

class TrellisGraph {
  public:
    // Fills `places`. All must outlive the graph.
    TrellisGraph(const ScoredTrellis& trellis, TrellisPlaces& places);

    struct Arcs {
        std::int64_t n, first;
        const std::int32_t* sources;
        const double *scores, *weights;

        std::int64_t source(std::int64_t k) const { return sources[k]; }
        double score(std::int64_t k) const { return scores[k]; }
        double weight(std::int64_t k) const { return weights[k]; }
    };
    struct Level {
        std::int64_t t, node_base, arc_base, first, outer, last, n_arcs;
        double arc_maximum;
        const std::int32_t *in, *sources, *labels;
        const double *scores, *weights, *states;
        std::int64_t oldest = first;

        double node_score(std::int64_t j) const { return states ? states[labels[j - outer]] : 0.0; }
        std::int64_t level_of(std::int64_t j) const { return j < first ? t - 1 : t; }
        Arcs into(std::int64_t j) const {
            const std::int64_t e = in[j - first];
            return {in[j - first + 1] - e, e, sources + e, scores + e, weights + e};
        }
    };

    static constexpr bool kKeepsArcs = true;
    std::int64_t n_levels() const { return static_cast<std::int64_t>(trellis_.steps.size()); }
    std::int64_t n_nodes() const { return places_.node_begin.back() + 1; }
    std::int64_t n_arcs() const { return places_.arc_begin.back(); }
    std::int64_t start() const { return 0; }
    std::int64_t end() const { return n_nodes() - 1; }
    Level level(std::int64_t t) const;
    std::int32_t label(std::int64_t t, std::int64_t node) const;

    // Sums numbers of nodes and of arcs (probabilities, or changes) by what they stand for: label at a
    // position [T, L], bigram between two positions [T − 1, A], active set. Added to what is there.
    void collect(const std::vector<double>& of_nodes, const std::vector<double>& of_arcs, std::int64_t n_arcs,
                 double* states, double* arcs, std::vector<double>& active) const;

  private:
    const ScoredTrellis& trellis_;
    const TrellisPlaces& places_;
};

inline TrellisGraph::Level TrellisGraph::level(std::int64_t t) const {
    const StepTable& table = trellis_.table;
    const std::int32_t number = trellis_.steps[t];
    const Step& step = table.steps[number];
    const bool weighted = trellis_.weighted;
    return {t,
            places_.node_begin[t],
            places_.arc_begin[t],
            step.n_before,
            step.n_sources(),
            step.n_nodes(),
            step.n_arcs,
            weighted ? trellis_.arcs.maximum(t, number) : 0.0,
            table.in_ptr.data() + step.first_in,
            table.source.data() + step.first_arc,
            table.labels(step.after).data(),
            trellis_.arcs.scores(t, number),
            weighted ? trellis_.arcs.weights(t, number) : trellis_.arcs.scores(t, number),  // not read
            t + 1 < n_levels() ? trellis_.states + t * trellis_.n_labels : nullptr};
}

inline std::int32_t TrellisGraph::label(std::int64_t t, std::int64_t node) const {
    const Step& step = trellis_.step(t);
    const std::int64_t j = node - places_.node_begin[t] - step.n_sources();
    return j < 0 ? -1 : trellis_.table.labels(step.after)[j];
}

}  // namespace crfkit
