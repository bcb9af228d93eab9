// The Viterbi algorithm: the path of a graph (graph.hpp) with the highest score.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/interruption.hpp"
#include "paths/graph.hpp"

namespace crfkit {

// max_e best(src e) + score e over the arcs into a node; two at a time, as each max waits for the one before.
template <PathArcs Arcs>
double highest_score(const Arcs& arcs, const double* best) {
    double even = kAbsent, odd = kAbsent;
    std::int64_t k = 0;
    for (; k + 2 <= arcs.n; k += 2) {
        even = std::max(even, best[arcs.source(k)] + arcs.score(k));
        odd = std::max(odd, best[arcs.source(k + 1)] + arcs.score(k + 1));
    }
    if (k < arcs.n) even = std::max(even, best[arcs.source(k)] + arcs.score(k));
    return std::max(even, odd);
}

// Viterbi:  best(START) = 0,  best(j) = score(j) + max_e (best(src e) + score e).
//
// Calls visit(t, node, arc) along the best path, from END to the first node; among equals it is the one whose
// arcs come first, from END on. Returns its score; −inf, and no visit, when no path is possible. `best`
// [nodes] is memory for the scores. They alone are kept: the arcs that they came by are found again along the
// one best path, where the same sum gives the same bits.
template <PathGraph Graph, class Visit>
double viterbi(const Graph& graph, std::vector<double>& best, const Visit& visit) {
    best.resize(static_cast<std::size_t>(graph.n_nodes()));
    best[graph.start()] = 0;
    Pace pace;
    for (std::int64_t t = 0; t < graph.n_levels(); ++t) {
        const auto level = graph.level(t);
        pace.work(4 * level.n_arcs);
        double* const scores = best.data() + level.node_base;
        for (std::int64_t j = level.first; j < level.last; ++j) {
            scores[j] = highest_score(level.into(j), scores);
            if (j >= level.outer) scores[j] += level.node_score(j);
        }
    }
    const double score = best[graph.end()];
    if (score == kAbsent) return kAbsent;
    for (std::int64_t t = graph.n_levels() - 1, node = graph.end(); t >= 0;) {
        const auto level = graph.level(t);
        const double* const scores = best.data() + level.node_base;
        const auto arcs = level.into(node - level.node_base);
        const double highest = highest_score(arcs, scores);
        std::int64_t k = 0;
        while (k + 1 < arcs.n && scores[arcs.source(k)] + arcs.score(k) != highest) ++k;
        visit(t, node, level.arc_base + arcs.first + k);
        t = level.level_of(arcs.source(k));
        node = level.node_base + arcs.source(k);
    }
    return score;
}

}  // namespace crfkit
