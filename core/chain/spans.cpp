#include "chain/spans.hpp"

#include <algorithm>

namespace crfkit {

// A type can reach the threshold only where one of its labels reaches its share of it.
void ChainSpans::find(double threshold, std::vector<ScoredSpan>& found) {
    std::size_t most = 1;
    for (std::int32_t type = 0; type < labels_.n_types(); ++type)
        most = std::max(most, labels_.members(type).size());
    const double share = threshold / static_cast<double>(most);
    for (std::int64_t start = 0; start < n_positions_; ++start) {
        const double* probs = m_.probs + start * stride_;
        for (std::int32_t b = 0; b < labels_.n_labels(); ++b) {
            const std::int32_t type = labels_.type(b);
            if (probs[b] < share || type < 0) continue;
            const auto& members = labels_.members(type);
            const auto first = std::find_if(members.begin(), members.end(),
                                            [&](std::int32_t member) { return probs[member] >= share; });
            if (*first != b) continue;  // done with the first of them
            extend(start, type, n_positions_, threshold, [&](std::int64_t end, double probability) {
                if (probability >= threshold) found.push_back({start, end, type, probability});
            });
        }
    }
}

void ChainSpans::probabilities(std::span<ScoredSpan> given) {
    for (ScoredSpan& span : given) {
        span.probability = 0;
        extend(span.start, span.type, span.end, 0, [&](std::int64_t end, double probability) {
            if (end == span.end) span.probability = probability;
        });
    }
}

// Positions in a span, less those that continue the span before them: P(a, b) = forward(a) W(a, b) pushed(b).
double ChainSpans::expected_number() const {
    double total = 0;
    for (std::int64_t t = 0; t < n_positions_; ++t) {
        for (std::int32_t b = 0; b < labels_.n_labels(); ++b)
            if (labels_.type(b) >= 0) total += m_.probs[t * stride_ + b];
        if (t == 0) continue;
        const double* weight = arcs_into(t);
        const double *before = m_.forward + (t - 1) * stride_, *pushed = m_.pushed + t * stride_;
        for (const auto& [a, b] : labels_.pairs()) total -= before[a] * weight[a * stride_ + b] * pushed[b];
    }
    return std::max(total, 0.0);
}

// report(end, P) for the spans of a type that begin at `start` and end at start + 1, start + 2, …, `end`,
// until what is open is below the threshold, or 0.
template <class Report>
void ChainSpans::extend(std::int64_t start, std::int32_t type, std::int64_t end, double threshold,
                        const Report& report) {
    const auto& members = labels_.members(type);
    begin(start, type);
    for (std::int64_t t = start; t < end; ++t) {
        double open = 0;
        for (std::size_t i = 0; i < members.size(); ++i)
            open += open_[i] * m_.backward[t * stride_ + members[i]];
        if (!(open > kImpossible<double> && open >= threshold)) return;
        pace_.work(4 * static_cast<std::int64_t>(members.size()) * stride_);
        report(t + 1, closed(t, type));
        if (t + 1 < end) advance(t + 1, type);
    }
}

// open_ = m_start.
void ChainSpans::begin(std::int64_t start, std::int32_t type) {
    open_.clear();
    const double *here = m_.forward + start * stride_, *before = here - stride_;
    for (const std::int32_t b : labels_.members(type)) {
        if (start == 0 || !labels_.follows(b)) {
            open_.push_back(here[b]);
            continue;
        }
        const double* weight = arcs_into(start) + b;
        double sum = 0;
        for (std::int32_t a = 0; a < labels_.n_labels(); ++a)
            if (!labels_.continues(a, b)) sum += before[a] * weight[a * stride_];
        open_.push_back(sum * m_.states[start * stride_ + b] * m_.scale[start]);
    }
}

// Turns open_ from m_{t−1} into m_t.
void ChainSpans::advance(std::int64_t t, std::int32_t type) {
    const auto& members = labels_.members(type);
    const double* weight = arcs_into(t);
    next_.assign(members.size(), 0.0);
    for (std::size_t j = 0; j < members.size(); ++j) {
        const std::int32_t b = members[j];
        double sum = 0;
        for (std::size_t i = 0; i < members.size(); ++i)
            if (labels_.continues(members[i], b)) sum += open_[i] * weight[members[i] * stride_ + b];
        next_[j] = sum * m_.states[t * stride_ + b] * m_.scale[t];
    }
    open_.swap(next_);
}

// The part of open_ = m_t that ends with position t.
double ChainSpans::closed(std::int64_t t, std::int32_t type) const {
    const auto& members = labels_.members(type);
    const double* backward = m_.backward + t * stride_;
    double total = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
        const std::int32_t a = members[i];
        if (t + 1 == n_positions_ || !labels_.goes_on(a)) {
            total += open_[i] * backward[a];
        } else if (open_[i] > 0) {
            const double *weight = arcs_into(t + 1) + a * stride_, *pushed = m_.pushed + (t + 1) * stride_;
            double sum = 0;
            for (std::int32_t b = 0; b < labels_.n_labels(); ++b)
                if (!labels_.continues(a, b)) sum += weight[b] * pushed[b];
            total += open_[i] * sum;
        }
    }
    return total;
}

}  // namespace crfkit
