// The best labels of one sequence, by whole rows of labels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "weight_tables.hpp"

namespace crfkit {

// scores [T, S]; `own` is empty or has, for every site, the arc scores [L, S] into it (null: those of the
// tables). messages [T, S] is scratch. Ties: the lower label, at the last site first. Returns the score of
// the labels, −inf when nothing is possible: then there are no labels.
template <class Real>
double best_labels(const WeightTables<Real>& tables, std::span<const Real* const> own, std::int64_t n_sites,
                   std::int32_t n_labels, const Real* scores, Real* messages, std::int32_t* labels) {
    const std::int64_t S = tables.stride, L = n_labels;
    const double score = tables.kernels.max_sum(tables.arcs.data(), own.empty() ? nullptr : own.data(),
                                                n_sites, n_labels, tables.stride, scores, messages);
    if (!(score > -std::numeric_limits<double>::infinity())) return score;
    const Real* row = messages + (n_sites - 1) * S;
    std::int64_t label = std::max_element(row, row + L) - row;
    labels[n_sites - 1] = static_cast<std::int32_t>(label);
    for (std::int64_t t = n_sites - 1; t > 0; --t) {  // which label before gave the best?
        const Real* arcs = (own.empty() || !own[t] ? tables.arcs.data() : own[t]) + label;
        row = messages + (t - 1) * S;
        label = 0;
        Real top = row[0] + arcs[0];
        for (std::int64_t a = 1; a < L; ++a)
            if (const Real reached = row[a] + arcs[a * S]; reached > top) {
                top = reached;
                label = a;
            }
        labels[t - 1] = static_cast<std::int32_t>(label);
    }
    return score;
}

}  // namespace crfkit
