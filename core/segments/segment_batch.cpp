#include "segments/segment_batch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/buffer.hpp"
#include "base/interruption.hpp"
#include "base/subnormals.hpp"
#include "base/threads.hpp"
#include "kernels/kernels.hpp"
#include "segments/segment_weights.hpp"

namespace crfkit {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// A probability, 0 where kFloor alone led to it.
double possible(double probability) { return probability < kImpossible<double> ? 0.0 : probability; }

// Lengths, ends and one table of transitions, in exp space.
class Table {
  public:
    Table(const SegmentBatch& batch, const double* transitions)
        : kernels(kernels_for<double>(batch.n_labels)),
          L_(batch.n_labels),
          Q_(stride_for(kernels, batch.n_labels)) {
        const std::int64_t K = batch.n_lengths;
        weights_.assign(L_ * Q_, 0.0);
        transposed_.assign(L_ * Q_, 0.0);
        for (Buffer<double>* row : {&start_, &end_, &nothing_}) row->assign(Q_, 0.0);
        lengths_.assign(K * Q_, 0.0);
        for (std::int64_t c = 0; c < L_; ++c) {
            start_[c] = exp_of(batch.start ? batch.start[c] : 0.0, kFarTransitions);
            end_[c] = exp_of(batch.end ? batch.end[c] : 0.0, kFarTransitions);
            for (std::int64_t after = 0; after < L_; ++after)
                weights_[c * Q_ + after] = transposed_[after * Q_ + c] =
                    exp_of(transitions[c * L_ + after], kFarTransitions);
            for (std::int64_t k = 0; k < K; ++k) {
                const double score = batch.lengths[k * L_ + c];
                lengths_[k * Q_ + c] = exp_of(score, kFarLengths);
                // What follows an open segment is bounded by what follows one that begins later (see
                // segment_weights.hpp), which is shorter: if that length exists.
                holes = holes || (k > 0 && score > kNever && !(batch.lengths[(k - 1) * L_ + c] > kNever));
            }
        }
        table = {batch.n_labels,
                 static_cast<std::int32_t>(Q_),
                 K,
                 weights_.data(),
                 transposed_.data(),
                 start_.data(),
                 end_.data(),
                 lengths_.data(),
                 nothing_.data(),
                 nothing_.data()};
    }

    const Kernels<double>& kernels;
    SegmentTable<double> table;
    bool near = true;    // whether scaled messages may be tried
    bool holes = false;  // whether a length exists, but not all shorter ones

  private:
    double exp_of(double score, double far) {
        near = near && (score == kNever || std::abs(score) <= far);  // not where it is no number
        return std::exp(score);
    }

    std::int64_t L_, Q_;
    Buffer<double> weights_, transposed_, start_, end_, nothing_, lengths_;
};

// Forward–backward of one sequence; each thread has an object of its own.
class Pass {
  public:
    Pass(const SegmentBatch& batch, const SegmentBatchSums& out) : b_(batch), out_(out) {}

    void run(std::int64_t n, const Table& shared) {
        const std::int64_t T = b_.sequence_sizes[n];
        out_.log_partition[n] = 0;
        out_.hard[n] = T > 0 && !(shared.near && sum(n, T, shared));
    }

  private:
    static constexpr std::int64_t kRows = 17;

    bool sum(std::int64_t n, std::int64_t T, const Table& shared) {
        const std::int64_t Q = shared.table.stride;
        rows_.resize(kRows * T * Q);
        lengths_.assign(b_.n_lengths * Q, 0.0);
        nothing_.assign(2 * Q, 0.0);
        double maxima = 0;
        if (!weigh(n, T, shared, maxima) || !weigh_segments(n, T, Q)) return false;
        const auto row = [&](int i) { return rows_.data() + i * T * Q; };
        double partition = 0;
        const SegmentMessages<double> messages{
            row(0),          row(1),    row(2),  row(3),  b_.segments ? cells_.data() : nullptr,
            factors_.data(), row(4),    row(5),  row(6),  row(7),
            row(8),          row(9),    row(10), row(11), row(12),
            row(13),         &partition};
        const SegmentSums<double> sums{
            row(14), row(15), row(16), lengths_.data(), nothing_.data(), nothing_.data() + Q, probs_.data()};
        const double log_partition = maxima + shared.kernels.segment_forward(shared.table, T, messages);
        if (!std::isfinite(log_partition) ||
            !(shared.kernels.segment_backward(shared.table, T, messages, sums) <= kMostAfter) ||
            ((shared.holes || holes_) && !is_bounded(T, shared.table, messages)))
            return false;
        out_.log_partition[n] = log_partition;
        store_positions(n, T, Q, sums);
        store_counts(n, T, shared, messages);
        if (b_.segments) store_segments(n, T, Q);
        return true;
    }

    // exp(score − maximum of the position), by the role of the position in its segment.
    bool weigh(std::int64_t n, std::int64_t T, const Table& shared, double& maxima) {
        const std::int64_t L = b_.n_labels, Q = shared.table.stride, roles = b_.first || b_.last ? 4 : 1;
        row_.assign(4 * Q, kNever);
        for (std::int64_t t = 0; t < T; ++t) {
            const std::int64_t at = (n * b_.n_positions + t) * L;
            double total = 0;
            for (std::int64_t c = 0; c < L; ++c) {
                const double score = b_.states[at + c], first = b_.first ? b_.first[at + c] : 0.0,
                             last = b_.last ? b_.last[at + c] : 0.0;
                row_[c] = score + first;
                total += row_[c];
                if (roles == 1) continue;
                row_[Q + c] = score;
                row_[2 * Q + c] = score + last;
                total += row_[3 * Q + c] = score + first + last;
            }
            if (std::isnan(total)) return false;
            const double maximum = shared.kernels.exponentiate(row_.data(), roles * Q);
            if (!(std::abs(maximum) < std::numeric_limits<double>::infinity())) return false;
            maxima += maximum;
            for (std::int64_t i = 0; i < 4; ++i)
                std::copy_n(row_.data() + (roles == 1 ? 0 : i * Q), Q, rows_.data() + (i * T + t) * Q);
            for (std::int64_t i = 0; i < roles; ++i) std::fill_n(row_.data() + i * Q + L, Q - L, kNever);
        }
        return true;
    }

    // The scores of whole segments, as those of features of single segments.
    bool weigh_segments(std::int64_t n, std::int64_t T, std::int64_t Q) {
        if (!b_.segments) return true;
        const std::int64_t L = b_.n_labels, K = b_.n_lengths;
        holes_ = false;
        cells_.resize(static_cast<std::size_t>(T * K));
        factors_.assign(T * K * Q, 1.0);
        probs_.assign(T * K * Q, 0.0);
        bool near = true;
        for (std::int64_t e = 0; e < T; ++e)
            for (std::int64_t k = 0; k < K; ++k) {
                cells_[e * K + k] = static_cast<std::int32_t>(e * K + k);
                if (k > e) continue;
                const double* scores = b_.segments + ((n * b_.n_positions + e - k) * K + k) * L;
                for (std::int64_t c = 0; c < L; ++c) {
                    if (scores[c] == 0) continue;  // as all are where only probabilities are asked for
                    near = near && (scores[c] == kNever || std::abs(scores[c]) <= kFarLengths);
                    holes_ = holes_ || scores[c] == kNever;
                    factors_[(e * K + k) * Q + c] = scores[c] == kNever ? 0.0 : std::exp(scores[c]);
                }
            }
        return near;
    }

    // Whether what follows open segments, R_e(t) = last_e ∘ after_e ∘ Π_{t<u<e} inside_u, is at most
    // kMostAfter, whichever segments exist: by its logarithm, where only those of inside_u > 1 count.
    bool is_bounded(std::int64_t T, const SegmentTable<double>& table,
                    const SegmentMessages<double>& m) const {
        const std::int64_t Q = table.stride, K = table.n_lengths;
        std::vector<double> grown(static_cast<std::size_t>(T));
        double window = 0;  // of the K positions before e
        for (std::int64_t e = 0; e < T; ++e) {
            double most = 1, ended = 0;
            for (std::int64_t c = 0; c < table.n_types; ++c) {
                most = std::max(most, m.inside[e * Q + c]);
                ended = std::max(ended, m.last[e * Q + c] * m.after[e * Q + c]);
            }
            if (!(window + std::log(ended) <= std::log(kMostAfter))) return false;
            window += grown[e] = std::log(most);
            if (e >= K) window -= grown[e - K];
        }
        return true;
    }

    // A segment that is open after position t − 1 has an inside position at t, or its last one.
    void store_positions(std::int64_t n, std::int64_t T, std::int64_t Q, const SegmentSums<double>& sums) {
        const std::int64_t L = b_.n_labels;
        for (std::int64_t c = 0; c < L; ++c) {
            double going = 0;
            for (std::int64_t t = 0; t < T; ++t) {
                const std::int64_t from = t * Q + c, to = (n * b_.n_positions + t) * L + c;
                const double within = std::max(going - sums.last[from], 0.0);
                const double begins = sums.first[from] + sums.single[from];
                if (out_.begins) out_.begins[to] = possible(begins);
                if (out_.ends) out_.ends[to] = possible(sums.last[from] + sums.single[from]);
                out_.covers[to] = possible(begins + sums.last[from] + within);
                going = sums.first[from] + within;
            }
        }
    }

    void store_counts(std::int64_t n, std::int64_t T, const Table& shared, const SegmentMessages<double>& m) {
        const std::int64_t L = b_.n_labels, K = b_.n_lengths, Q = shared.table.stride;
        row_.assign(Q * Q, 0.0);
        if (T > 1)
            shared.kernels.add_products(m.ended, m.before + Q, T - 1, b_.n_labels, shared.table.stride,
                                        row_.data());
        for (std::int64_t a = 0; a < L; ++a) {
            for (std::int64_t c = 0; c < L; ++c)
                out_.transitions[(n * L + a) * L + c] =
                    possible(row_[a * Q + c] * shared.table.weights[a * Q + c]);
            out_.start[n * L + a] = possible(m.begin[a] * m.before[a]);
            out_.end[n * L + a] = possible(m.ended[(T - 1) * Q + a] * m.after[(T - 1) * Q + a]);
        }
        for (std::int64_t k = 0; k < K; ++k)
            std::copy_n(lengths_.data() + k * Q, L, out_.lengths + (n * K + k) * L);
    }

    void store_segments(std::int64_t n, std::int64_t T, std::int64_t Q) {
        const std::int64_t L = b_.n_labels, K = b_.n_lengths;
        for (std::int64_t e = 0; e < T; ++e)
            for (std::int64_t k = 0; k < std::min(K, e + 1); ++k)
                std::copy_n(probs_.data() + (e * K + k) * Q, L,
                            out_.segments + ((n * b_.n_positions + e - k) * K + k) * L);
    }

    const SegmentBatch& b_;
    const SegmentBatchSums& out_;
    Buffer<double> rows_, row_, lengths_, nothing_, factors_, probs_;
    std::vector<std::int32_t> cells_;
    bool holes_ = false;  // whether some segments have the score −inf
};

// Viterbi of one sequence:
//
//   begin_t(c)  = max_c' ended_{t−1}(c') + transition(c', c)
//   ended_e(c)  = last_e + max_k (begin_s + first_s + Σ_{s≤u≤e} state_u + length(k) + segment(s, k)),  s = e
//   − k + 1
//
// No back-pointers are stored: backtracking looks for the maximum of one label again.
class BestPass {
  public:
    explicit BestPass(const SegmentBatch& batch) : b_(batch), L_(batch.n_labels), K_(batch.n_lengths) {}

    void run(std::int64_t n, std::int64_t* tags) {
        n_ = n;
        const std::int64_t T = b_.sequence_sizes[n];
        transitions_ = b_.transitions + (b_.own_transitions ? n * L_ * L_ : 0);
        begin_.assign(T * L_, kNever);
        going_.resize(T * L_);
        ended_.assign(T * L_, kNever);
        Pace pace;
        for (std::int64_t t = 0; t < T; ++t) {
            pace.work(4 * L_ * (L_ + std::min(K_, t + 1)));
            begin(t);
            end(t);
        }
        if (T > 0) follow(T, tags + n * b_.n_positions);
    }

  private:
    std::int64_t at(std::int64_t t) const { return (n_ * b_.n_positions + t) * L_; }

    void begin(std::int64_t t) {
        double* const row = begin_.data() + t * L_;
        if (t == 0) {
            for (std::int64_t c = 0; c < L_; ++c) row[c] = b_.start ? b_.start[c] : 0.0;
        } else {
            for (std::int64_t a = 0; a < L_; ++a) {
                const double before = ended_[(t - 1) * L_ + a];
                for (std::int64_t c = 0; c < L_; ++c)
                    row[c] = std::max(row[c], before + transitions_[a * L_ + c]);
            }
        }
        for (std::int64_t c = 0; c < L_; ++c)
            going_[t * L_ + c] = row[c] + (b_.first ? b_.first[at(t) + c] : 0.0);
    }

    void end(std::int64_t t) {
        double* const row = ended_.data() + t * L_;
        const double* const states = b_.states + at(t);
        for (std::int64_t s = std::max<std::int64_t>(0, t - K_ + 1); s <= t; ++s) {
            double* const going = going_.data() + s * L_;
            const double* const lengths = b_.lengths + (t - s) * L_;
            for (std::int64_t c = 0; c < L_; ++c) going[c] += states[c];
            if (!b_.segments) {
                for (std::int64_t c = 0; c < L_; ++c) row[c] = std::max(row[c], going[c] + lengths[c]);
                continue;
            }
            const double* const own = b_.segments + (at(s) * K_ + (t - s) * L_);
            for (std::int64_t c = 0; c < L_; ++c) row[c] = std::max(row[c], going[c] + lengths[c] + own[c]);
        }
        if (b_.last)
            for (std::int64_t c = 0; c < L_; ++c) row[c] += b_.last[at(t) + c];
    }

    void follow(std::int64_t T, std::int64_t* tags) const {
        double best = kNever;
        std::int64_t c = -1;
        for (std::int64_t a = 0; a < L_; ++a)
            if (const double score = ended_[(T - 1) * L_ + a] + (b_.end ? b_.end[a] : 0.0); score > best) {
                best = score;
                c = a;
            }
        for (std::int64_t e = T - 1; c >= 0;) {
            const std::int64_t s = begin_of(e, c);
            for (std::int64_t t = s; t <= e; ++t) tags[t] = t == s ? c : c + L_;
            if (s == 0) break;
            const std::int64_t after = c;
            best = kNever;
            for (std::int64_t a = 0; a < L_; ++a)
                if (const double score = ended_[(s - 1) * L_ + a] + transitions_[a * L_ + after];
                    score > best) {
                    best = score;
                    c = a;
                }
            e = s - 1;
        }
    }

    // Where the best segment that ends with position e begins.
    std::int64_t begin_of(std::int64_t e, std::int64_t c) const {
        double best = kNever, states = 0;
        std::int64_t found = e;
        for (std::int64_t s = e; s >= 0 && s > e - K_; --s) {
            states += b_.states[at(s) + c];
            const double score = begin_[s * L_ + c] + (b_.first ? b_.first[at(s) + c] : 0.0) + states +
                                 b_.lengths[(e - s) * L_ + c] +
                                 (b_.segments ? b_.segments[at(s) * K_ + (e - s) * L_ + c] : 0.0);
            if (score > best) {
                best = score;
                found = s;
            }
        }
        return found;
    }

    const SegmentBatch& b_;
    const std::int64_t L_, K_;
    std::int64_t n_ = 0;
    const double* transitions_ = nullptr;
    Buffer<double> begin_, going_, ended_;
};

}  // namespace

void sum_segments(const SegmentBatch& batch, const SegmentBatchSums& out, int n_threads) {
    std::vector<Pass> passes;
    for (int i = 0; i < std::max(1, n_threads); ++i) passes.emplace_back(batch, out);
    const Table shared(batch, batch.transitions);
    const std::int64_t size = static_cast<std::int64_t>(batch.n_labels) * batch.n_labels;
    parallel_for(batch.n_sequences, n_threads, [&](std::int64_t n, int worker) {
        const FlushSubnormals flush;
        if (batch.own_transitions)
            passes[worker].run(n, Table(batch, batch.transitions + n * size));
        else
            passes[worker].run(n, shared);
    });
}

void best_segments(const SegmentBatch& batch, std::int64_t* tags, int n_threads) {
    std::vector<BestPass> passes;
    for (int i = 0; i < std::max(1, n_threads); ++i) passes.emplace_back(batch);
    std::fill_n(tags, batch.n_sequences * batch.n_positions, std::int64_t(-1));
    parallel_for(batch.n_sequences, n_threads,
                 [&](std::int64_t n, int worker) { passes[worker].run(n, tags); });
}

}  // namespace crfkit
