// Φ w at one position, from features as they came: no table is expanded beforehand.
#pragma once

#include <cstdint>

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

}  // namespace crfkit
