// Included by segment_pass.hpp: the best segmentation, and the score of a given one.
//
//   begin_t(c)   = max_c' ended_{t−1}(c') + transition(c', c)
//   going_s(t)   = begin_s + first_s + Σ_{s<u≤t} inside_u                  began at s, goes on after t
//   ended_t(c)   = max over lengths k ≤ K of going_{t−k+1}(t−1) + last_t + length(k) + features,
//                  over those beyond K, and begin_t + single_t + length(1) + features
#pragma once

#include <algorithm>

#include "base/interruption.hpp"
#include "paths/graph.hpp"
#include "segments/segment_pass.hpp"

namespace crfkit {

template <class Real>
double SegmentPass::decode(const Real* states, std::int64_t S, std::int32_t* labels) {
    const std::int64_t C = model_.n_types(), K = weights_.table.n_lengths;
    const auto at = [&](std::int64_t t, std::int32_t label) {
        return label < 0 ? kAbsent : static_cast<double>(states[t * S + label]);
    };
    std::vector<double> begin(static_cast<std::size_t>(C)), ended(static_cast<std::size_t>(T_ * C)),
        going(static_cast<std::size_t>(T_ * C)), beyond(static_cast<std::size_t>(C), kAbsent);
    std::vector<std::int32_t> before(static_cast<std::size_t>(T_ * C), -1);  // type before one that begins
    std::vector<std::int64_t> start(static_cast<std::size_t>(T_ * C)),
        long_start(static_cast<std::size_t>(C));
    Pace pace;
    for (std::int64_t t = 0; t < T_; ++t) {
        const std::int64_t earliest = std::max<std::int64_t>(0, t - K + 1);
        pace.work(4 * C * (C + t - earliest));
        for (std::int32_t c = 0; c < C; ++c) {
            begin[c] = t == 0 ? weights_.transition(-1, c) : kAbsent;
            for (std::int32_t a = 0; a < C && t > 0; ++a)
                if (const double score = ended[(t - 1) * C + a] + weights_.transition(a, c);
                    score > begin[c]) {
                    begin[c] = score;
                    before[t * C + c] = a;
                }
            const std::int64_t known = model_.unlimited[c] ? K : model_.n_lengths[c];
            const double inside = at(t, model_.inside[c]), last = at(t, model_.last[c]);
            double best = begin[c] + at(t, model_.single[c]) + segment_score(c, t, 1);
            start[t * C + c] = t;
            for (std::int64_t s = earliest; s < t; ++s) {
                double& score = going[s * C + c];
                if (score == kAbsent) continue;
                if (const std::int64_t k = t - s + 1; k <= known)
                    if (const double found = score + last + segment_score(c, t, k); found > best) {
                        best = found;
                        start[t * C + c] = s;
                    }
                score += inside;
            }
            if (model_.unlimited[c]) {  // begins with the position after K, at t
                const double longer = weights_.length(c, model_.n_lengths[c] + 1),
                             entered = t >= K ? going[(t - K) * C + c] + weights_.length(c, K + 1) - longer
                                              : kAbsent;
                if (entered > beyond[c]) {
                    beyond[c] = entered;
                    long_start[c] = t - K;
                }
                beyond[c] += longer;
                if (beyond[c] + last > best) {
                    best = beyond[c] + last;
                    start[t * C + c] = long_start[c];
                }
                beyond[c] += inside;
            }
            ended[t * C + c] = best;
            going[t * C + c] = begin[c] + at(t, model_.first[c]);
        }
    }
    double best = kAbsent;
    std::int32_t c = -1;
    for (std::int32_t a = 0; a < C; ++a)
        if (const double score = ended[(T_ - 1) * C + a] + weights_.transition(a, -1); score > best) {
            best = score;
            c = a;
        }
    for (std::int64_t last = T_ - 1; c >= 0;) {
        const std::int64_t s = start[last * C + c];
        for (std::int64_t t = s; t <= last; ++t)
            labels[t] = s == last   ? model_.single[c]
                        : t == s    ? model_.first[c]
                        : t == last ? model_.last[c]
                                    : model_.inside[c];
        c = before[s * C + c];
        last = s - 1;
    }
    return best;
}

template <class Real, class Visit>
double SegmentPass::score(const Real* states, std::int64_t S, const std::int32_t* labels,
                          const Visit& visit) const {
    const std::int64_t K = weights_.table.n_lengths;
    double score = 0;
    std::int32_t before = -1;
    for (std::int64_t s = 0, e; s < T_; s = e) {
        const std::int32_t c = weights_.type_of[labels[s]];
        for (e = s + 1; e < T_; ++e)
            if (model_.repeats ? weights_.begins[labels[e]] != 0 : labels[e] != labels[s]) break;
        const std::int64_t k = e - s;
        for (std::int64_t t = s; t < e; ++t) score += static_cast<double>(states[t * S + labels[t]]);
        score +=
            weights_.transition(before, c) + (k <= K ? segment_score(c, e - 1, k) : weights_.length(c, k));
        visit(before, c, k, k <= K ? cell(e - 1, k) : -1);
        before = c;
    }
    visit(before, -1, 0, -1);
    return score + weights_.transition(before, -1);
}

}  // namespace crfkit
