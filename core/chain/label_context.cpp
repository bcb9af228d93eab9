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

// Σ P(y_{t−1} = a, y_t = b) · score(a, b), with P = forward_{t−1}(a) W_t(a, b) pushed_t(b).
double ChainContext::mean_arcs(std::int64_t t) const {
    const double *before = m_.forward + (t - 1) * stride_, *after = m_.pushed + t * stride_,
                 *scores = arcs_into(t), *weights = has_own_arcs(t) ? position_arcs_[t].weight : arcs_.weight;
    double mean = 0;
    for (std::int32_t a = 0; a < n_labels_; ++a) {
        if (!(before[a] > 0)) continue;
        for (std::int32_t b = 0; b < n_labels_; ++b)
            if (const double prob = before[a] * weights[a * stride_ + b] * after[b]; prob > 0)
                mean += prob * scores[a * stride_ + b];
    }
    return mean;
}

// What the kernel takes off the messages at a position: the largest scores of states and arcs, and the sum of
// the messages before.
void ChainContext::add_scale(std::int64_t t, Total& total) const {
    const double* scores = scores_ + t * stride_;
    total.add(*std::max_element(scores, scores + n_labels_));
    if (t == 0) return;
    total.add(has_own_arcs(t) ? position_arcs_[t].maximum : arcs_.maximum);
    total.add(-std::log(m_.scale[t]));
}

WindowContext ChainContext::window(double log_z, std::int64_t first, std::int64_t size) const {
    WindowContext found;
    found.log_partition = log_z;
    found.arcs.assign(static_cast<std::size_t>(size) + 1, 0.0);
    Total scale;
    for (std::int64_t t = 0; t < first; ++t) add_scale(t, scale);
    for (std::int64_t t = first; t <= first + size && t < n_positions_; ++t) {
        if (t > 0) found.arcs[t - first] = mean_arcs(t);
        if (t == first + size) break;
        const double *probs = m_.probs + t * stride_, *scores = scores_ + t * stride_;
        double own = 0, beginnings = 0;
        for (std::int32_t b = 0; b < n_labels_; ++b) {
            found.probs.push_back(probs[b]);
            if (!(probs[b] > 0)) continue;
            own += probs[b] * scores[b];
            beginnings += m_.forward[t * stride_ + b];
        }
        add_scale(t, scale);
        found.own.push_back(own);
        found.beginnings.push_back(std::log(beginnings) + scale.value());
    }
    return found;
}

}  // namespace crfkit
