// The Viterbi algorithm on one dense chain. The kernel max_sum fills messages with
//   δ_0 = scores_0,     δ_t(b) = scores_t(b) + max_a (δ_{t−1}(a) + arcs(a, b)),
// and backtracking finds y_{T−1} = argmax δ_{T−1}, y_{t−1} = argmax_a (δ_{t−1}(a) + arcs(a, y_t)).
// No back-pointers are stored: one column of arcs is read again at each position, which costs less.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "data/weight_tables.hpp"

namespace crfkit {

// scores [T, S]; arcs [L, S]; `own` is empty or has, for every position, the arc scores [L, S] into it (null:
// those of all positions). messages [T, S] is scratch. Ties: the lower label, at the last position first.
// Returns the score of the labels, −inf when nothing is possible: then there are no labels.
template <class Real>
double best_labels(const Kernels<Real>& kernels, const Real* arcs, std::int32_t stride,
                   std::span<const Real* const> own, std::int64_t n_positions, std::int32_t n_labels,
                   const Real* scores, Real* messages, std::int32_t* labels) {
    const std::int64_t S = stride, L = n_labels;
    const double score = kernels.max_sum(arcs, own.empty() ? nullptr : own.data(), n_positions, n_labels,
                                         stride, scores, messages);
    if (!(score > -std::numeric_limits<double>::infinity())) return score;
    const Real* row = messages + (n_positions - 1) * S;
    std::int64_t label = std::max_element(row, row + L) - row;
    labels[n_positions - 1] = static_cast<std::int32_t>(label);
    for (std::int64_t t = n_positions - 1; t > 0; --t) {  // backtracking
        const Real* into = (own.empty() || !own[t] ? arcs : own[t]) + label;
        row = messages + (t - 1) * S;
        label = 0;
        Real top = row[0] + into[0];
        for (std::int64_t a = 1; a < L; ++a)
            if (const Real reached = row[a] + into[a * S]; reached > top) {
                top = reached;
                label = a;
            }
        labels[t - 1] = static_cast<std::int32_t>(label);
    }
    return score;
}

// The same with the arcs of a model.
template <class Real>
double best_labels(const WeightTables<Real>& tables, std::span<const Real* const> own,
                   std::int64_t n_positions, std::int32_t n_labels, const Real* scores, Real* messages,
                   std::int32_t* labels) {
    return best_labels<Real>(tables.kernels, tables.arcs.data(), tables.stride, own, n_positions, n_labels,
                             scores, messages, labels);
}

}  // namespace crfkit
