#include "segments/segment_pass.hpp"

#include <algorithm>
#include <cmath>

namespace crfkit {

bool SegmentPass::load(std::int64_t n) {
    const SegmentFeatures& features = data_.features;
    const std::int64_t first = data_.design->sequence_ptr[n], K = weights_.table.n_lengths,
                       Q = weights_.table.stride;
    T_ = data_.design->sequence_ptr[n + 1] - first;
    cells_.clear();
    if (features.empty()) return true;
    cell_of_.assign(static_cast<std::size_t>(T_ * K), -1);
    for (std::int64_t t = 0; t < T_; ++t)
        for (std::int64_t i = features.cell_ptr[first + t]; i < features.cell_ptr[first + t + 1]; ++i) {
            if (features.lengths[i] > std::min(K, t + 1)) continue;
            cell_of_[t * K + features.lengths[i] - 1] = static_cast<std::int32_t>(cells_.size());
            cells_.push_back(i);
        }
    const std::int64_t size = static_cast<std::int64_t>(cells_.size()) * Q;
    cell_scores_.assign(size, 0.0);
    factors_.assign(size, 1.0);
    for (std::size_t i = 0; i < cells_.size(); ++i)
        model_.each_pair(features, cells_[i], [&](std::int32_t c, std::int64_t id, double value) {
            cell_scores_[static_cast<std::int64_t>(i) * Q + c] += value * weights_.own[id];
        });
    bool near = true;
    for (std::int64_t i = 0; i < size; ++i) {
        if (cell_scores_[i] == 0) continue;  // most types have no weight for the features of a cell
        near = near && std::abs(cell_scores_[i]) <= kFarLengths;
        factors_[i] = std::exp(cell_scores_[i]);
    }
    return near;
}

double SegmentPass::segment_score(std::int32_t c, std::int64_t last, std::int64_t k) const {
    const std::int32_t i = cell(last, k);
    return weights_.length(c, k) +
           (i < 0 ? 0.0 : cell_scores_[i * static_cast<std::int64_t>(weights_.table.stride) + c]);
}

// exp(score − maximum of the position), by the roles that labels have in each type.
template <class Real>
bool SegmentPass::weigh(const Real* states, std::int64_t S, double& maxima) {
    const std::int64_t Q = weights_.table.stride;
    row_.resize(S);
    std::fill_n(rows(kFirst), 4 * T_ * Q, 0.0);
    for (std::int64_t t = 0; t < T_; ++t) {
        for (std::int64_t b = 0; b < S; ++b) row_[b] = static_cast<double>(states[t * S + b]);
        const double maximum = weights_.kernels.exponentiate(row_.data(), S);
        if (!(maximum > kAbsent)) return false;
        maxima += maximum;
        const auto copy = [&](Row role, const std::vector<std::int32_t>& labels) {
            double* const row = rows(role) + t * Q;
            for (std::size_t c = 0; c < labels.size(); ++c)
                if (labels[c] >= 0) row[c] = row_[labels[c]];
        };
        copy(kFirst, model_.first);
        copy(kInside, model_.inside);
        copy(kLast, model_.last);
        copy(kSingle, model_.single);
    }
    return true;
}

template <class Real>
bool SegmentPass::run(const Real* states, std::int64_t S, double& log_partition) {
    const std::int64_t Q = weights_.table.stride;
    rows_.resize(kRows * T_ * Q);
    double maxima = 0;
    if (!weigh(states, S, maxima)) return false;
    counts_.clear(std::min(weights_.table.n_lengths, T_), Q);
    cell_probs_.assign(static_cast<std::int64_t>(cells_.size()) * Q, 0.0);
    SegmentMessages<double> messages{};
    messages.first = rows(kFirst);
    messages.inside = rows(kInside);
    messages.last = rows(kLast);
    messages.single = rows(kSingle);
    messages.cells = cells_.empty() ? nullptr : cell_of_.data();
    messages.factors = factors_.data();
    messages.begin = rows(kBegin);
    messages.going = rows(kGoing);
    messages.long_going = rows(kLong);
    messages.several = rows(kSeveral);
    messages.ended = rows(kEnded);
    messages.after = rows(kAfter);
    messages.before = rows(kBefore);
    messages.rest = rows(kRest);
    messages.gamma = rows(kGamma);
    messages.window = rows(kWindow);
    messages.partition = &partition_;
    log_partition = maxima + weights_.kernels.segment_forward(weights_.table, T_, messages);
    if (!std::isfinite(log_partition)) return false;
    const SegmentSums<double> sums{rows(kProbFirst),       rows(kProbLast),         rows(kProbSingle),
                                   counts_.lengths.data(), counts_.entering.data(), counts_.beyond.data(),
                                   cell_probs_.data()};
    return weights_.kernels.segment_backward(weights_.table, T_, messages, sums) <= kMostAfter;
}

// A segment that is open after position t − 1 has an inside position at t, or its last one:
//   inside_t = going_{t−1} − last_t,    going_t = first_t + inside_t
void SegmentPass::add_probs(double weight, std::int64_t S, double* probs) const {
    const std::int64_t Q = weights_.table.stride;
    const double *firsts = rows(kProbFirst), *lasts = rows(kProbLast), *singles = rows(kProbSingle);
    for (std::int32_t c = 0; c < model_.n_types(); ++c) {
        const std::int32_t first = model_.first[c], inside = model_.inside[c], last = model_.last[c],
                           single = model_.single[c];
        double going = 0;
        for (std::int64_t t = 0; t < T_; ++t) {
            double* const row = probs + t * S;
            const std::int64_t at = t * Q + c;
            const double within = std::max(going - lasts[at], 0.0);
            if (first >= 0) row[first] += weight * firsts[at];
            if (single >= 0) row[single] += weight * singles[at];
            if (last >= 0) row[last] += weight * lasts[at];
            if (inside >= 0) row[inside] += weight * within;
            going = firsts[at] + within;
        }
    }
}

double SegmentPass::n_segments(std::int32_t c) const {
    const std::int64_t Q = weights_.table.stride;
    double total = 0;
    for (std::int64_t t = 0; t < T_; ++t) total += rows(kProbFirst)[t * Q + c] + rows(kProbSingle)[t * Q + c];
    return total;
}

const SegmentCounts& SegmentPass::count() {
    const std::int64_t Q = weights_.table.stride;
    const std::int32_t C = model_.n_types();
    const double *begin = rows(kBegin), *ended = rows(kEnded), *after = rows(kAfter), *before = rows(kBefore);
    weights_.kernels.add_products(ended, before + Q, T_ - 1, C, static_cast<std::int32_t>(Q),
                                  counts_.transitions.data());
    for (std::int64_t i = 0; i < C * Q; ++i) counts_.transitions[i] *= weights_.table.weights[i];
    for (std::int32_t c = 0; c < C; ++c) {
        counts_.start[c] = begin[c] * before[c];
        counts_.end[c] = ended[(T_ - 1) * Q + c] * after[(T_ - 1) * Q + c];
    }
    for (std::size_t i = 0; i < cells_.size(); ++i)
        model_.each_pair(data_.features, cells_[i], [&](std::int32_t c, std::int64_t id, double value) {
            counts_.own.emplace_back(id, value * cell_probs_[static_cast<std::int64_t>(i) * Q + c]);
        });
    return counts_;
}

template bool SegmentPass::run<float>(const float*, std::int64_t, double&);
template bool SegmentPass::run<double>(const double*, std::int64_t, double&);

}  // namespace crfkit
