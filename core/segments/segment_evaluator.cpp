#include "segments/segment_evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/interruption.hpp"

namespace crfkit {

template <class Real>
SegmentEvaluator<Real>::SegmentEvaluator(const SegmentData& data, const Annotation& gold,
                                         const ArcModel& arcs, const FeatureGroups& groups,
                                         const std::vector<Block>& blocks, PartLoss& parts,
                                         const PartSource& source)
    : BlockedEvaluator(*data.layout, *data.design, gold),
      data_(data),
      model_(data.model),
      blocks_(blocks),
      parts_(parts),
      source_(source),
      tables_(layout_, WeightTables<Real>::kNever, &groups),
      scorer_(layout_, design_, tables_),
      segments_(data, arcs),
      sums_(layout_, design_, blocks, tables_) {}

// Hessian–vector products are those of the path engine.
template <class Real>
double SegmentEvaluator<Real>::evaluate(const double* w, const double* v, double* out, int n_threads) {
    if (v) {
        parts_.hessian_vector(w, v, out);
        return std::numeric_limits<double>::quiet_NaN();
    }
    if (!segments_.set(w)) return parts_.evaluate(w, out);
    tables_.set(w, n_threads);
    if (!design_.is_split()) tables_.list_features();
    tables_.start.assign(tables_.stride, Real(0));  // transitions are those between segments
    tables_.end.assign(tables_.stride, Real(0));
    counts_.clear(segments_.table.n_lengths, segments_.table.stride);
    own_sums_.assign(static_cast<std::size_t>(model_.n_own()), 0.0);
    hard_.clear();
    sums_.clear(out, SumGrid(), n_threads);
    std::fill(out + layout_.n_weights(), out + source_.n_weights, 0.0);
    const double value = run_blocks(blocks_.size(), out, n_threads);
    if (hard_.empty()) return value;
    PartSequence sequence(source_);
    std::vector<double> weights, residuals, gradient;
    double rest = 0;
    for (const std::int64_t n : hard_) {
        sequence.load(n);
        const auto& ranges = sequence.ranges();
        weights.clear();
        for (const SlotRange range : ranges) weights.push_back(w[range.begin]);
        residuals.resize(static_cast<std::size_t>(sequence.n_residuals()));
        gradient.resize(ranges.size());
        rest += sequence.differentiate(weights.data(), residuals.data());
        sequence.gradient(residuals.data(), gradient.data());
        for (std::size_t k = 0; k < ranges.size(); ++k) out[ranges[k].begin] += gradient[k];
    }
    return value + rest;
}

template <class Real>
void SegmentEvaluator<Real>::open(std::size_t n_slots, std::size_t n_workers) {
    slots_.resize(std::max(slots_.size(), n_slots));
    while (work_.size() < n_workers) work_.emplace_back(data_, segments_);
}

template <class Real>
void SegmentEvaluator<Real>::run_block(std::size_t i, std::size_t slot_number, std::size_t worker) {
    const Block& block = blocks_[i];
    const std::int64_t Q = segments_.table.stride, K = segments_.table.n_lengths;
    Work& work = work_[worker];
    auto& [block_residuals, sums, counts, hard] = slots_[slot_number];
    block_residuals.resize((block.last_position - block.first_position) * tables_.stride);
    counts.clear(K, Q);
    hard.clear();
    for (std::int64_t n = block.first_sequence; n < block.last_sequence; ++n) {
        const std::int64_t begin = design_.sequence_ptr[n], T = design_.sequence_ptr[n + 1] - begin;
        losses_[n] = 0;
        if (T == 0) continue;
        check_interruption();
        Real* residuals = block_residuals.data() + (begin - block.first_position) * tables_.stride;
        work.counts.clear(std::min(K, T), Q);
        if (run_sequence(n, work, residuals)) {
            counts.add(work.counts, 1.0, std::min(K, T));
        } else {
            hard.push_back(n);
            losses_[n] = 0;
            std::fill_n(residuals, T * tables_.stride, Real(0));
        }
    }
    sums_.open(i, sums);
}

// weight · (log Z − log Z_gold), and its residuals: those of positions, and counts of what segments have.
// False where scaled messages may have lost something.
template <class Real>
bool SegmentEvaluator<Real>::run_sequence(std::int64_t n, Work& work, Real* residuals) {
    const std::int64_t first = design_.sequence_ptr[n], T = design_.sequence_ptr[n + 1] - first,
                       S = tables_.stride;
    const double weight = gold_.weights[n];
    double log_partition = 0, log_gold = 0;
    work.states.resize(T * S);
    work.probs.assign(T * S, 0.0);
    scorer_.score(n, work.states.data());
    close_labels(design_.allowed, first, T, layout_.n_labels, static_cast<std::int32_t>(S),
                 work.states.data());
    if (!work.pass.load(n) || !run_states(weight, work, log_partition)) return false;
    if (gold_.complete(first, first + T)) {
        log_gold = add_gold(n, work);
    } else {
        for (std::int64_t t = 0; t < T; ++t)
            gold_.forbidden(first + t, layout_.n_labels,
                            [&](std::int32_t b) { work.states[t * S + b] = WeightTables<Real>::kNever; });
        if (!run_states(-weight, work, log_gold)) return false;
    }
    for (std::int64_t i = 0; i < T * S; ++i) residuals[i] = static_cast<Real>(work.probs[i]);
    losses_[n] = weight * (log_partition - log_gold);
    return true;
}

// Adds weight times the probabilities of labels to probs, and of what segments have to the counts.
template <class Real>
bool SegmentEvaluator<Real>::run_states(double weight, Work& work, double& log_partition) {
    if (!work.pass.run(work.states.data(), tables_.stride, log_partition)) return false;
    work.pass.add_probs(weight, tables_.stride, work.probs.data());
    const SegmentCounts& counts = work.pass.count();
    work.counts.add(counts, weight, counts.lengths.size() / segments_.table.stride);
    return true;
}

// The score of the one segmentation that a complete annotation names; −weight times what it has is added.
template <class Real>
double SegmentEvaluator<Real>::add_gold(std::int64_t n, Work& work) {
    const std::int64_t begin = design_.sequence_ptr[n], T = design_.sequence_ptr[n + 1] - begin,
                       S = tables_.stride, Q = segments_.table.stride, K = segments_.table.n_lengths;
    const double weight = gold_.weights[n];
    const std::int32_t* const labels = gold_.labels.data() + begin;
    SegmentCounts& counts = work.counts;
    for (std::int64_t t = 0; t < T; ++t) work.probs[t * S + labels[t]] -= weight;
    return work.pass.score(work.states.data(), S, labels,
                           [&](std::int32_t before, std::int32_t c, std::int64_t k, std::int32_t cell) {
                               if (c < 0) {
                                   counts.end[before] -= weight;
                                   return;
                               }
                               (before < 0 ? counts.start[c] : counts.transitions[before * Q + c]) -= weight;
                               if (k <= K) {
                                   counts.lengths[(k - 1) * Q + c] -= weight;
                               } else {
                                   counts.entering[c] -= weight;
                                   counts.beyond[c] -= weight * static_cast<double>(k - K);
                               }
                               if (cell >= 0)
                                   work.pass.each_feature(cell, c, [&](std::int64_t id, double value) {
                                       counts.own.emplace_back(id, -weight * value);
                                   });
                           });
}

template <class Real>
void SegmentEvaluator<Real>::sum(std::size_t i, std::size_t slot_number, std::int64_t range) {
    Slot& slot = slots_[slot_number];
    sums_.sum(i, range, slot.residuals.data(), nullptr, slot.sums);
}

template <class Real>
void SegmentEvaluator<Real>::merge(std::size_t i, std::size_t slot_number, std::int64_t range, double* out) {
    const Slot& slot = slots_[slot_number];
    sums_.merge(i, slot.sums, range, slot.residuals.data(), out);
    if (range == 0) merge_counts(slot);
}

template <class Real>
void SegmentEvaluator<Real>::add(std::size_t i, std::size_t slot_number, std::int64_t range, double* out) {
    Slot& slot = slots_[slot_number];
    sums_.add(i, range, slot.residuals.data(), nullptr, slot.sums, out);
    if (range == 0) merge_counts(slot);
}

template <class Real>
void SegmentEvaluator<Real>::merge_counts(const Slot& slot) {
    counts_.add(slot.counts, 1.0, segments_.table.n_lengths);
    for (const auto& [id, number] : counts_.own) own_sums_[id] += number;
    counts_.own.clear();
    hard_.insert(hard_.end(), slot.hard.begin(), slot.hard.end());
}

template <class Real>
void SegmentEvaluator<Real>::finish(double* out, int n_threads) {
    sums_.write_rows(out, n_threads);
    segments_.add_gradient(counts_, out);
    for (std::size_t id = 0; id < own_sums_.size(); ++id)
        out[data_.own_begin() + static_cast<std::int64_t>(id)] += own_sums_[id];
}

template class SegmentEvaluator<float>;
template class SegmentEvaluator<double>;

}  // namespace crfkit
