// Φ w at one position, from features as they came: no table is expanded beforehand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "data/design.hpp"
#include "data/layout.hpp"

namespace crfkit {

// row[outcome − shift] += value · weight for every weight of the features of a position; weights [P] are
// those of the state pairs, outcomes the labels (shift 0) or facets that they score.
template <class Weight, class Score>
void add_position_scores(const Layout& layout, const ActiveIds& features, std::int64_t position,
                         const Weight* weights, std::int32_t shift, Score* row) {
    for (std::int64_t i = features.ptr[position]; i < features.ptr[position + 1]; ++i) {
        const std::int32_t f = features.ids[i];
        const Score value = features.values.size() > 0 ? static_cast<Score>(features.values[i]) : Score(1);
        for (std::int64_t p = layout.pair_ptr[f]; p < layout.pair_ptr[f + 1]; ++p)
            row[layout.pair_labels[p] - shift] += value * weights[p];
    }
}

// out[k] = value_k · Σ_b coefficients[b] · (weight of feature ids[k] for label b): what each of these
// features adds to a weighted sum of the scores of the labels. values may be empty: all 1. coefficients [L].
inline void feature_scores(const Layout& layout, std::span<const double> weights,
                           std::span<const std::int32_t> ids, std::span<const double> values,
                           std::span<const double> coefficients, double* out) {
    std::vector<double> of_outcomes(static_cast<std::size_t>(layout.n_outcomes()), 0.0);
    std::copy(coefficients.begin(), coefficients.end(), of_outcomes.begin());
    const Facets& facets = layout.facets;
    for (std::int32_t b = 0; b < layout.n_labels && !facets.empty(); ++b)
        for (std::int64_t k = facets.ptr[b]; k < facets.ptr[b + 1]; ++k)
            of_outcomes[facets.ids[k]] += coefficients[b];
    for (std::size_t k = 0; k < ids.size(); ++k) {
        double sum = 0;
        for (std::int64_t p = layout.pair_ptr[ids[k]]; p < layout.pair_ptr[ids[k] + 1]; ++p)
            if (const double c = of_outcomes[layout.pair_labels[p]]; c != 0) sum += c * weights[p];
        out[k] = values.empty() ? sum : values[k] * sum;
    }
}

}  // namespace crfkit
