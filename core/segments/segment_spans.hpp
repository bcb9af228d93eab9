// Included by segment_pass.hpp: the probabilities of single segments.
//
//   P(s, e, c) = begin_s first_s · Π_{s<u<e−1} inside_u · last_{e−1} after_{e−1} · length and features
//
// Of the segments that begin at s, what is left after those that were found only falls: a threshold ends it.
#pragma once

#include <algorithm>

#include "segments/segment_pass.hpp"

namespace crfkit {

template <class Found>
void SegmentPass::each_segment(std::int32_t c, double threshold, const Found& found) const {
    const std::int64_t Q = weights_.table.stride, K = weights_.table.n_lengths;
    const std::int64_t longest = model_.unlimited[c] ? T_ : model_.n_lengths[c];
    const double enough = threshold * (1 - 1e-9) - 1e-12;  // `left` is a difference
    for (std::int64_t s = 0; s < T_; ++s) {
        const std::int64_t at = s * Q + c;
        if (rows(kProbSingle)[at] >= threshold) found(s, s + 1, rows(kProbSingle)[at]);
        double left = rows(kProbFirst)[at], mass = rows(kBegin)[at] * rows(kFirst)[at];
        for (std::int64_t t = s + 1; t < std::min(T_, s + longest) && left >= enough; ++t) {
            const std::int64_t k = t - s + 1, here = t * Q + c;
            if (k == K + 1) mass *= weights_.table.beyond[c];
            if (k > K) mass *= weights_.table.longer[c];
            double factor = 1;
            if (k <= K) {
                const std::int32_t i = cell(t, k);
                factor = weights_.table.lengths[(k - 1) * Q + c] * (i < 0 ? 1.0 : factors_[i * Q + c]);
            }
            const double probability = mass * factor * rows(kLast)[here] * rows(kAfter)[here];
            if (probability >= threshold) found(s, t + 1, probability);
            left -= probability;
            mass *= rows(kInside)[here];
        }
    }
}

}  // namespace crfkit
