#include "segments/segment_evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/interruption.hpp"
#include "base/subnormals.hpp"

namespace crfkit {
namespace {

// Why scaled messages are exact: a product that underflows is worth at most the smallest number times what
// follows it. Messages that follow are compared with kMost, those of going segments through the ones that
// begin at the same position: they differ by weights of lengths and of segment features, which lie within
// exp(±kFar) each. So a loss is below 1e−308 · 1e150 · e^(4 kFar) < 1e−70 of Z.
constexpr double kMost = 1e150, kFar = 50, kFarTransitions = 200;

enum Rows {
    kFirst,
    kInside,
    kLast,
    kSingle,
    kBegin,
    kGoing,
    kLong,
    kSeveral,
    kEnded,
    kAfter,
    kBefore,
    kRest,
    kGamma,
    kWindow,
    kProbFirst,
    kProbLast,
    kProbSingle,
    kRows
};

}  // namespace

void SegmentCounts::clear(std::int64_t n_types, std::int64_t n_lengths, std::int64_t stride) {
    transitions.assign(n_types * stride, 0.0);
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
    : kernels(kernels_for<double>(data.model.n_types())), data_(data), model_(data.model), arcs_(arcs) {
    table.n_types = model_.n_types();
    table.stride = stride_for(kernels, table.n_types);
    table.n_lengths = *std::max_element(model_.n_lengths.begin(), model_.n_lengths.end());
}

double SegmentWeights::length(std::int32_t c, std::int64_t k) const {
    if (model_.length_begin[c] < 0) return 0;
    const std::int64_t known = model_.n_lengths[c];
    return k <= known ? own[model_.length_weight(c, k)]
                      : static_cast<double>(k - known) * own[model_.length_weight(c, known + 1)];
}

bool SegmentWeights::set(const double* w) {
    const std::int32_t C = table.n_types;
    const std::int64_t Q = table.stride, K = table.n_lengths;
    bool near = true;
    const auto exp_of = [&](double score, double far) {
        near = near && (score == kAbsent || std::abs(score) <= far);
        return std::exp(score);
    };
    own = w + data_.layout->n_weights();
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
        exp_start_[c] = exp_of(start_[c] = arc_scores_.start[label], kFarTransitions);
        exp_end_[c] = exp_of(end_[c] = arc_scores_.end[label], kFarTransitions);
        for (std::int32_t after = 0; after < C; ++after) {
            const std::int32_t k = arcs_.bigrams.find(label, model_.transition[after]);
            if ((after == c && !model_.repeats) || (k < 0 && !arcs_.bigrams.soft)) continue;
            scores_[c * Q + after] = k < 0 ? 0.0 : arc_scores_.arcs.scores[k];
            weights_[c * Q + after] = transposed_[after * Q + c] =
                exp_of(scores_[c * Q + after], kFarTransitions);
        }
        const std::int64_t known = model_.n_lengths[c];
        for (std::int64_t k = 1; k <= (model_.unlimited[c] ? K : known); ++k)
            lengths_[(k - 1) * Q + c] = exp_of(length(c, k), kFar);
        if (!model_.unlimited[c]) continue;
        beyond_[c] = exp_of(known == K ? 0.0 : length(c, K), kFar);
        longer_[c] = exp_of(length(c, known + 1), kFar);
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
    const std::int64_t Q = table.stride, K = table.n_lengths, own_begin = data_.layout->n_weights();
    std::vector<double> arcs(static_cast<std::size_t>(arcs_.bigrams.n_arcs()), 0.0),
        start(static_cast<std::size_t>(data_.layout->n_labels), 0.0), end = start;
    for (std::int32_t c = 0; c < C; ++c) {
        start[model_.transition[c]] = counts.start[c];
        end[model_.transition[c]] = counts.end[c];
        for (std::int32_t after = 0; after < C; ++after)
            if (const std::int32_t k = arcs_.bigrams.find(model_.transition[c], model_.transition[after]);
                k >= 0)
                arcs[k] = counts.transitions[c * Q + after];
        if (model_.length_begin[c] < 0) continue;
        const std::int64_t known = model_.n_lengths[c];
        for (std::int64_t k = 1; k <= known; ++k)
            out[own_begin + model_.length_weight(c, k)] += counts.lengths[(k - 1) * Q + c];
        if (!model_.unlimited[c]) continue;
        double longer = static_cast<double>(K - known) * counts.entering[c] + counts.beyond[c];
        for (std::int64_t k = known + 1; k <= K; ++k)
            longer += static_cast<double>(k - known) * counts.lengths[(k - 1) * Q + c];
        out[own_begin + model_.length_weight(c, known + 1)] += longer;
    }
    arcs_.add_gradient(arcs, start, end, out);
    for (const auto& [id, number] : counts.own) out[own_begin + id] += number;
}

template <class Real>
SegmentEvaluator<Real>::SegmentEvaluator(const SegmentData& data, const Annotation& gold,
                                         const ArcModel& arcs, const std::vector<Block>& blocks,
                                         PartLoss& parts, const PartSource& source)
    : BlockedEvaluator(*data.layout, *data.design, gold),
      data_(data),
      model_(data.model),
      blocks_(blocks),
      parts_(parts),
      source_(source),
      tables_(layout_, WeightTables<Real>::kNever),
      scorer_(layout_, design_, tables_),
      segments_(data, arcs),
      sums_(layout_, design_, blocks, tables_),
      type_of_(static_cast<std::size_t>(layout_.n_labels), -1),
      begins_(static_cast<std::size_t>(layout_.n_labels), 0) {
    for (std::int32_t c = 0; c < model_.n_types(); ++c)
        for (const auto* labels : {&model_.first, &model_.inside, &model_.last, &model_.single})
            if (const std::int32_t b = (*labels)[c]; b >= 0) {
                type_of_[b] = c;
                begins_[b] |= labels == &model_.first || labels == &model_.single;
            }
}

// Hessian–vector products are those of the path engine.
template <class Real>
double SegmentEvaluator<Real>::evaluate(const double* w, const double* v, double* out, int n_threads) {
    if (v) {
        parts_.hessian_vector(w, v, out);
        return std::numeric_limits<double>::quiet_NaN();
    }
    if (!segments_.set(w)) return parts_.evaluate(w, out);
    tables_.set(w, n_threads);
    tables_.start.assign(tables_.stride, Real(0));  // transitions are those between segments
    tables_.end.assign(tables_.stride, Real(0));
    counts_.clear(model_.n_types(), segments_.table.n_lengths, segments_.table.stride);
    hard_.clear();
    sums_.clear(out, n_threads);
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
std::int64_t SegmentEvaluator<Real>::open_block(std::size_t i, int n_threads) {
    const Block& block = blocks_[i];
    const auto n_chunks = static_cast<std::int64_t>(block.chunks.size()) - 1;
    residuals_.resize((block.last_position - block.first_position) * tables_.stride);
    chunks_.resize(std::max(chunks_.size(), static_cast<std::size_t>(n_chunks)));
    reserve(work_, n_chunks, n_threads);
    return n_chunks;
}

template <class Real>
void SegmentEvaluator<Real>::run_chunk(std::size_t i, std::int64_t chunk, int worker) {
    const Block& block = blocks_[i];
    const std::int64_t Q = segments_.table.stride, K = segments_.table.n_lengths;
    const FlushSubnormals flush;
    Work& work = work_[worker];
    auto& [counts, hard] = chunks_[chunk];
    counts.clear(model_.n_types(), K, Q);
    hard.clear();
    for (std::int64_t n = block.chunks[chunk]; n < block.chunks[chunk + 1]; ++n) {
        const std::int64_t begin = design_.sequence_ptr[n], T = design_.sequence_ptr[n + 1] - begin;
        losses_[n] = 0;
        if (T == 0) continue;
        check_interruption();
        Real* residuals = residuals_.data() + (begin - block.first_position) * tables_.stride;
        work.of_sequence.clear(model_.n_types(), std::min(K, T), Q);
        if (run_sequence(n, work, residuals)) {
            counts.add(work.of_sequence, 1.0, std::min(K, T));
        } else {
            hard.push_back(n);
            losses_[n] = 0;
            std::fill_n(residuals, T * tables_.stride, Real(0));
        }
    }
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
    if (!read_cells(n, work) || !run_states(n, weight, work, log_partition)) return false;
    if (gold_.complete(first, first + T)) {
        log_gold = add_gold(n, work);
    } else {
        for (std::int64_t t = 0; t < T; ++t)
            gold_.forbidden(first + t, layout_.n_labels,
                            [&](std::int32_t b) { work.states[t * S + b] = WeightTables<Real>::kNever; });
        if (!run_states(n, -weight, work, log_gold)) return false;
    }
    for (std::int64_t i = 0; i < T * S; ++i) residuals[i] = static_cast<Real>(work.probs[i]);
    losses_[n] = weight * (log_partition - log_gold);
    return true;
}

// Adds weight times the probabilities of labels to probs, and of what segments have to the counts.
template <class Real>
bool SegmentEvaluator<Real>::run_states(std::int64_t n, double weight, Work& work, double& log_partition) {
    const std::int64_t T = design_.sequence_ptr[n + 1] - design_.sequence_ptr[n], S = tables_.stride,
                       Q = segments_.table.stride, size = T * Q;
    const std::int32_t C = model_.n_types();
    work.rows.resize(kRows * size);
    work.row.resize(S);
    const auto rows = [&](int i) { return work.rows.data() + i * size; };
    std::fill_n(rows(kFirst), 4 * size, 0.0);
    double maxima = 0;
    for (std::int64_t t = 0; t < T; ++t) {
        for (std::int64_t b = 0; b < S; ++b) work.row[b] = work.states[t * S + b];
        const double maximum = segments_.kernels.exponentiate(work.row.data(), S);
        if (!(maximum > kAbsent)) return false;
        maxima += maximum;
        const auto copy = [&](int role, const std::vector<std::int32_t>& labels) {
            double* const row = rows(role) + t * Q;
            for (std::int32_t c = 0; c < C; ++c)
                if (labels[c] >= 0) row[c] = work.row[labels[c]];
        };
        copy(kFirst, model_.first);
        copy(kInside, model_.inside);
        copy(kLast, model_.last);
        copy(kSingle, model_.single);
    }
    const bool with_cells = !work.cell_numbers.empty();
    work.counts.clear(C, std::min(segments_.table.n_lengths, T), Q);
    work.cell_probs.assign(static_cast<std::int64_t>(work.cell_numbers.size()) * Q, 0.0);
    const SegmentMessages<double> messages{rows(kFirst),
                                           rows(kInside),
                                           rows(kLast),
                                           rows(kSingle),
                                           with_cells ? work.cells.data() : nullptr,
                                           work.rows_of_cells.data(),
                                           rows(kBegin),
                                           rows(kGoing),
                                           rows(kLong),
                                           rows(kSeveral),
                                           rows(kEnded),
                                           rows(kAfter),
                                           rows(kBefore),
                                           rows(kRest),
                                           rows(kGamma),
                                           rows(kWindow),
                                           &work.partition};
    const SegmentSums<double> sums{rows(kProbFirst),
                                   rows(kProbLast),
                                   rows(kProbSingle),
                                   work.counts.lengths.data(),
                                   work.counts.entering.data(),
                                   work.counts.beyond.data(),
                                   work.cell_probs.data()};
    log_partition = maxima + segments_.kernels.segment_forward(segments_.table, T, messages);
    if (!std::isfinite(log_partition)) return false;
    const double largest = segments_.kernels.segment_backward(segments_.table, T, messages, sums);
    if (!(largest <= kMost)) return false;
    if (T > 1)
        for (std::int64_t t = 1; t < T; ++t)
            for (std::int32_t a = 0; a < C; ++a) {
                const double ended = messages.ended[(t - 1) * Q + a];
                for (std::int64_t b = 0; b < Q; ++b)
                    work.counts.transitions[a * Q + b] += ended * messages.before[t * Q + b];
            }
    for (std::int64_t i = 0; i < C * Q; ++i) work.counts.transitions[i] *= segments_.table.weights[i];
    for (std::int32_t c = 0; c < C; ++c) {
        work.counts.start[c] = messages.begin[c] * messages.before[c];
        work.counts.end[c] = messages.ended[(T - 1) * Q + c] * messages.after[(T - 1) * Q + c];
    }
    add_probs(T, weight, sums, work);
    count_features(1.0, work);
    work.of_sequence.add(work.counts, weight, std::min(segments_.table.n_lengths, T));
    return true;
}

// A segment that is open after position t − 1 has an inside position at t, or its last one:
//   inside_t = going_{t−1} − last_t,    going_t = first_t + inside_t
template <class Real>
void SegmentEvaluator<Real>::add_probs(std::int64_t T, double weight, const SegmentSums<double>& sums,
                                       Work& work) {
    const std::int64_t S = tables_.stride, Q = segments_.table.stride;
    for (std::int32_t c = 0; c < model_.n_types(); ++c) {
        const std::int32_t first = model_.first[c], inside = model_.inside[c], last = model_.last[c],
                           single = model_.single[c];
        double going = 0;
        for (std::int64_t t = 0; t < T; ++t) {
            double* const row = work.probs.data() + t * S;
            const std::int64_t at = t * Q + c;
            const double within = std::max(going - sums.last[at], 0.0);
            if (first >= 0) row[first] += weight * sums.first[at];
            if (single >= 0) row[single] += weight * sums.single[at];
            if (last >= 0) row[last] += weight * sums.last[at];
            if (inside >= 0) row[inside] += weight * within;
            going = sums.first[at] + within;
        }
    }
}

// exp of the scores of the features of each segment that has some. False where they are too far from 0.
template <class Real>
bool SegmentEvaluator<Real>::read_cells(std::int64_t n, Work& work) {
    const SegmentFeatures& features = data_.features;
    work.cell_numbers.clear();
    if (features.empty()) return true;
    const std::int64_t first = design_.sequence_ptr[n], T = design_.sequence_ptr[n + 1] - first,
                       K = segments_.table.n_lengths, Q = segments_.table.stride;
    work.cells.assign(static_cast<std::size_t>(T * K), -1);
    for (std::int64_t t = 0; t < T; ++t)
        for (std::int64_t i = features.cell_ptr[first + t]; i < features.cell_ptr[first + t + 1]; ++i) {
            if (features.lengths[i] > std::min(K, t + 1)) continue;
            work.cells[t * K + features.lengths[i] - 1] = static_cast<std::int32_t>(work.cell_numbers.size());
            work.cell_numbers.push_back(i);
        }
    work.rows_of_cells.assign(static_cast<std::int64_t>(work.cell_numbers.size()) * Q, 0.0);
    bool near = true;
    for (std::size_t cell = 0; cell < work.cell_numbers.size(); ++cell) {
        const std::int64_t i = work.cell_numbers[cell];
        double* const row = work.rows_of_cells.data() + static_cast<std::int64_t>(cell) * Q;
        model_.each_pair(features, i, [&](std::int32_t c, std::int64_t id, double value) {
            row[c] += value * segments_.own[id];
        });
        for (std::int32_t c = 0; c < model_.n_types(); ++c) {
            near = near && std::abs(row[c]) <= kFar;
            row[c] = std::exp(row[c]);
        }
    }
    return near;
}

template <class Real>
void SegmentEvaluator<Real>::count_features(double weight, Work& work) {
    const std::int64_t Q = segments_.table.stride;
    for (std::size_t cell = 0; cell < work.cell_numbers.size(); ++cell) {
        const double* const row = work.cell_probs.data() + static_cast<std::int64_t>(cell) * Q;
        model_.each_pair(data_.features, work.cell_numbers[cell],
                         [&](std::int32_t c, std::int64_t id, double value) {
                             work.counts.own.emplace_back(id, weight * value * row[c]);
                         });
    }
}

// The score of the one segmentation that a complete annotation names; −weight times what it has is added.
template <class Real>
double SegmentEvaluator<Real>::add_gold(std::int64_t n, Work& work) {
    const std::int64_t begin = design_.sequence_ptr[n], T = design_.sequence_ptr[n + 1] - begin,
                       S = tables_.stride, Q = segments_.table.stride;
    const double weight = gold_.weights[n];
    const std::int32_t* const labels = gold_.labels.data() + begin;
    SegmentCounts& counts = work.of_sequence;
    double score = 0;
    std::int32_t before = -1;
    for (std::int64_t s = 0, e; s < T; s = e) {
        const std::int32_t c = type_of_[labels[s]];
        for (e = s + 1; e < T; ++e)
            if (model_.repeats ? begins_[labels[e]] != 0 : labels[e] != labels[s]) break;
        for (std::int64_t t = s; t < e; ++t) {
            score += work.states[t * S + labels[t]];
            work.probs[t * S + labels[t]] -= weight;
        }
        score += segments_.transition(before, c) + segments_.length(c, e - s);
        (before < 0 ? counts.start[c] : counts.transitions[before * Q + c]) -= weight;
        const std::int64_t K = segments_.table.n_lengths, k = e - s;
        if (k <= K) {
            counts.lengths[(k - 1) * Q + c] -= weight;
            const std::int32_t cell = work.cell_numbers.empty() ? -1 : work.cells[(e - 1) * K + k - 1];
            if (cell >= 0)
                model_.each_pair(data_.features, work.cell_numbers[cell],
                                 [&](std::int32_t type, std::int64_t id, double value) {
                                     if (type != c) return;
                                     score += value * segments_.own[id];
                                     counts.own.emplace_back(id, -weight * value);
                                 });
        } else {
            counts.entering[c] -= weight;
            counts.beyond[c] -= weight * static_cast<double>(k - K);
        }
        before = c;
    }
    counts.end[before] -= weight;
    return score + segments_.transition(before, -1);
}

template <class Real>
void SegmentEvaluator<Real>::collect(std::size_t i) {
    for (std::size_t chunk = 0; chunk + 1 < blocks_[i].chunks.size(); ++chunk) {
        counts_.add(chunks_[chunk].counts, 1.0, segments_.table.n_lengths);
        hard_.insert(hard_.end(), chunks_[chunk].hard.begin(), chunks_[chunk].hard.end());
    }
}

template <class Real>
void SegmentEvaluator<Real>::finish(double* out, int n_threads) {
    sums_.write_rows(out, n_threads);
    segments_.add_gradient(counts_, out);
}

template class SegmentEvaluator<float>;
template class SegmentEvaluator<double>;

}  // namespace crfkit
