#include "chain/label_context.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace crfkit {

// The largest score is subtracted before exp.
std::pair<double, std::int32_t> ChainContext::neighbours(const double* weights, const double* scores,
                                                         std::int64_t step) const {
    double largest = kAbsent, sum = 0, mean = 0, most = 0;
    std::int32_t likeliest = -1;
    for (std::int32_t k = 0; k < n_labels_; ++k)
        if (weights[k] > 0) largest = std::max(largest, scores[k * step]);
    for (std::int32_t k = 0; k < n_labels_; ++k) {
        const double score = scores[k * step];
        if (!(weights[k] > 0) || score == kAbsent) continue;
        const double weight = weights[k] * std::exp(score - largest);
        sum += weight;
        mean += weight * score;
        if (weight > most) {
            most = weight;
            likeliest = k;
        }
    }
    return {mean / sum, likeliest};
}

LabelContext ChainContext::of(std::int64_t i, std::int32_t label) const {
    LabelContext found;
    const double prob = m_.probs[i * stride_ + label];
    if (!(prob >= kUncertain)) return found;
    if (i > 0)
        std::tie(found.before, found.label_before) =
            neighbours(m_.forward + (i - 1) * stride_, arcs_into(i) + label, stride_);
    if (i + 1 < n_positions_)
        std::tie(found.after, found.label_after) =
            neighbours(m_.pushed + (i + 1) * stride_, arcs_into(i + 1) + label * stride_, 1);
    found.log_probability = std::log(prob);
    found.own = scores_[i * stride_ + label];
    const double log_beginnings = std::log(m_.forward[i * stride_ + label]);
    found.left = log_beginnings - found.own - found.before;
    found.right = found.log_probability - log_beginnings - found.after;
    return found;
}

}  // namespace crfkit
