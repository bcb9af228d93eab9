#include "segments/segment_weights.hpp"

#include <algorithm>
#include <cmath>

#include "paths/graph.hpp"

namespace crfkit {

void SegmentCounts::clear(std::int64_t n_lengths, std::int64_t stride) {
    transitions.assign(stride * stride, 0.0);
    for (Buffer<double>* row : {&start, &end, &entering, &beyond}) row->assign(stride, 0.0);
    lengths.assign(n_lengths * stride, 0.0);
    own.clear();
}

void SegmentCounts::add(const SegmentCounts& other, double weight, std::int64_t n_lengths) {
    const auto add_rows = [weight](Buffer<double>& rows, const Buffer<double>& more, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) rows[i] += weight * more[i];
    };
    const std::int64_t Q = start.size();
    add_rows(transitions, other.transitions, transitions.size());
    add_rows(start, other.start, Q);
    add_rows(end, other.end, Q);
    add_rows(entering, other.entering, Q);
    add_rows(beyond, other.beyond, Q);
    add_rows(lengths, other.lengths, n_lengths * Q);
    for (const auto& [id, number] : other.own) own.emplace_back(id, weight * number);
}

SegmentWeights::SegmentWeights(const SegmentData& data, const ArcModel& arcs)
    : kernels(kernels_for<double>(data.model.n_types())),
      type_of(static_cast<std::size_t>(data.layout->n_labels), -1),
      begins(static_cast<std::size_t>(data.layout->n_labels), 0),
      data_(data),
      model_(data.model),
      arcs_(arcs) {
    for (std::int32_t c = 0; c < model_.n_types(); ++c)
        for (const auto* labels : {&model_.first, &model_.inside, &model_.last, &model_.single})
            if (const std::int32_t b = (*labels)[c]; b >= 0) {
                type_of[b] = c;
                begins[b] |= labels == &model_.first || labels == &model_.single;
            }
    table.n_types = model_.n_types();
    table.stride = stride_for(kernels, table.n_types);
    table.n_lengths = *std::max_element(model_.n_lengths.begin(), model_.n_lengths.end());
}

double SegmentWeights::length(std::int32_t c, std::int64_t k) const {
    const std::int64_t known = model_.n_lengths[c], at = model_.length_weight(c, std::min(k, known + 1));
    if (at < 0) return 0;
    return k <= known ? own[at] : static_cast<double>(k - known) * own[at];
}

bool SegmentWeights::set(const double* w) {
    const std::int32_t C = table.n_types;
    const std::int64_t Q = table.stride, K = table.n_lengths;
    bool near = true;
    const auto exp_of = [&](double score, double far) {
        near = near && (score == kAbsent || std::abs(score) <= far);
        return std::exp(score);
    };
    own = w + data_.own_begin();
    arcs_.score(w, arc_scores_);
    scores_.assign(static_cast<std::size_t>(C * Q), kAbsent);
    start_.assign(static_cast<std::size_t>(Q), kAbsent);
    end_ = start_;
    weights_.assign(C * Q, 0.0);
    transposed_.assign(C * Q, 0.0);
    for (Buffer<double>* row : {&exp_start_, &exp_end_, &beyond_, &longer_}) row->assign(Q, 0.0);
    lengths_.assign(K * Q, 0.0);
    for (std::int32_t c = 0; c < C; ++c) {
        const std::int32_t label = model_.transition[c];
        if (model_.follows(-1, c))
            exp_start_[c] = exp_of(start_[c] = arc_scores_.start[label], kFarTransitions);
        if (model_.follows(c, -1)) exp_end_[c] = exp_of(end_[c] = arc_scores_.end[label], kFarTransitions);
        for (std::int32_t after = 0; after < C; ++after) {
            const std::int32_t k = arcs_.bigrams.find(label, model_.transition[after]);
            if (!model_.follows(c, after) || (k < 0 && !arcs_.bigrams.soft)) continue;
            scores_[c * Q + after] = k < 0 ? 0.0 : arc_scores_.arcs.scores[k];
            weights_[c * Q + after] = transposed_[after * Q + c] =
                exp_of(scores_[c * Q + after], kFarTransitions);
        }
        const std::int64_t known = model_.n_lengths[c];
        for (std::int64_t k = 1; k <= (model_.unlimited[c] ? K : known); ++k)
            lengths_[(k - 1) * Q + c] = exp_of(length(c, k), kFarLengths);
        if (!model_.unlimited[c]) continue;
        beyond_[c] = exp_of(known == K ? 0.0 : length(c, K), kFarLengths);
        longer_[c] = exp_of(length(c, known + 1), kFarLengths);
    }
    table = {C,
             static_cast<std::int32_t>(Q),
             K,
             weights_.data(),
             transposed_.data(),
             exp_start_.data(),
             exp_end_.data(),
             lengths_.data(),
             beyond_.data(),
             longer_.data()};
    return near;
}

// Positions beyond K_c up to K have weights as lengths, those beyond K through `entering` and `beyond`.
void SegmentWeights::add_gradient(const SegmentCounts& counts, double* out) const {
    const std::int32_t C = table.n_types;
    const std::int64_t Q = table.stride, K = table.n_lengths, own_begin = data_.own_begin();
    std::vector<double> arcs(static_cast<std::size_t>(arcs_.bigrams.n_arcs()), 0.0),
        start(static_cast<std::size_t>(data_.layout->n_labels), 0.0), end = start;
    for (std::int32_t c = 0; c < C; ++c) {
        start[model_.transition[c]] = counts.start[c];
        end[model_.transition[c]] = counts.end[c];
        for (std::int32_t after = 0; after < C; ++after)
            if (const std::int32_t k = arcs_.bigrams.find(model_.transition[c], model_.transition[after]);
                k >= 0)
                arcs[k] = counts.transitions[c * Q + after];
        const std::int64_t known = model_.n_lengths[c];
        for (std::int64_t k = 1; k <= std::min(known, model_.n_own_lengths[c]); ++k)
            out[own_begin + model_.length_weight(c, k)] += counts.lengths[(k - 1) * Q + c];
        if (!model_.unlimited[c]) continue;
        double longer = static_cast<double>(K - known) * counts.entering[c] + counts.beyond[c];
        for (std::int64_t k = known + 1; k <= K; ++k)
            longer += static_cast<double>(k - known) * counts.lengths[(k - 1) * Q + c];
        out[own_begin + model_.length_weight(c, known + 1)] += longer;
    }
    arcs_.add_gradient(arcs, start, end, out);
}

}  // namespace crfkit
