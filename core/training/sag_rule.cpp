#include "training/sag_rule.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "base/buffer.hpp"
#include "base/interruption.hpp"

namespace crfkit {
namespace {

constexpr double kFirstEstimate = 1;       // of L_i, before any is known
constexpr double kShrink = 0.9;            // of L_i before a line search: it may be too large by now
constexpr double kSmallSlope = 1e-8;       // |gradient|² below which a line search tells nothing
constexpr double kLongestStreak = 10;      // pauses grow to 2^10 visits
constexpr double kSmallestFactor = 1e-9;   // P of a group: below, all weights are settled and P begins at 1
constexpr double kLeastShrinkage = 1e-12;  // what a step leaves of a weight at the least: P is never 0
constexpr int kMostDoublings = 100;

// What is known of a sequence.
struct Visit {
    double lipschitz;  // L_i; 0: never visited
    double loss;       // at the last visit
    double pause;      // visits until its next line search
    double streak;     // line searches in a row that found L_i large enough
};
constexpr std::int64_t kFields = sizeof(Visit) / sizeof(double);
static_assert(kFields == 4);

// Sums and maxima over N numbers, one of which changes at a time: a binary heap, node k over 2 k and 2 k + 1.
class NumberTree {
  public:
    explicit NumberTree(std::int64_t n) : n_(n), first_(1) {
        while (first_ < n) first_ *= 2;
        sums_.assign(static_cast<std::size_t>(2 * first_), 0.0);
        largest_ = sums_;
    }
    void set(std::int64_t i, double number) {
        std::int64_t at = first_ + i;
        sums_[at] = largest_[at] = number;
        for (at /= 2; at > 0; at /= 2) {
            sums_[at] = sums_[2 * at] + sums_[2 * at + 1];
            largest_[at] = std::max(largest_[2 * at], largest_[2 * at + 1]);
        }
    }
    double sum() const { return sums_[1]; }
    double largest() const { return largest_[1]; }
    // i with probability number_i / sum, by a uniform number in [0, 1).
    std::int64_t draw(double uniform) const {
        double rest = uniform * sum();
        std::int64_t at = 1;
        while (at < first_) {
            at *= 2;
            if (rest < sums_[at] || sums_[at + 1] <= 0) continue;
            rest -= sums_[at];
            ++at;
        }
        return std::min(at - first_, n_ - 1);
    }

  private:
    std::int64_t n_, first_;  // leaves first_.. of the heap
    std::vector<double> sums_, largest_;
};

// The steps of one pass. w = P v with P = Π (1 − α l2 / N), so that a step along the average gradient is
// v −= α / (m P) s. While no step touches a weight, its s stays the same, and v loses s (R − R when it was
// last touched), where R = Σ α / (m P).
class Steps {
  public:
    Steps(const SequenceSource& source, std::span<const double> l2, const RuleState& state, int n_threads)
        : source_(source),
          groups_(source.pack_strengths(l2)),
          residual_ptr_(source.residual_ptr(n_threads)),
          w_(state.array("weights")),
          s_(state.array("gradient_sum")),
          residuals_(state.array("residuals", residual_ptr_.back())),
          visits_(reinterpret_cast<Visit*>(state.array("visits", kFields * source.n_sequences()).data())),
          n_losses_(state.array("n_losses", 1)[0]),
          v_(source.n_slots()),
          slopes_(source.n_slots()),
          tree_(source.n_sequences()),
          sequence_(source.open()),
          sums_(groups_.l2.size()) {
        stamps_.assign(source.n_slots(), 0.0);
        for (std::int64_t i = 0; i < source.n_sequences(); ++i) {
            tree_.set(i, visits_[i].lipschitz);
            n_visited_ += visits_[i].lipschitz > 0;
        }
        source_.pack(w_.data(), 0, v_.data());
        source_.pack(s_.data(), 0, slopes_.data());
    }

    // One step; where i is −1 it draws a sequence by uniforms [2]. Returns the loss of the sequence before.
    double run(std::int64_t i, const double* uniforms) {
        const std::int64_t n = source_.n_sequences();
        if (i < 0 && (uniforms[0] < 0.5 || n_visited_ == 0))
            i = std::min(n - 1, static_cast<std::int64_t>(uniforms[1] * static_cast<double>(n)));
        else if (i < 0)
            i = tree_.draw(uniforms[1]);
        visit(i);
        step();
        return visits_[i].loss;
    }

    void give_back() {
        fold();
        source_.unpack(v_.data(), w_.data());
        source_.unpack(slopes_.data(), s_.data());
    }

  private:
    // The weights of the sequence, brought up to date.
    void read() {
        const auto& ranges = sequence_->ranges();
        if (sums_.size() == 1) {
            const LateWeights late{v_.data(), slopes_.data(), stamps_.data(), sums_[0].P, sums_[0].R};
            step_kernels().read_late(ranges.data(), static_cast<std::int64_t>(ranges.size()), late,
                                     weights_.data());
            return;
        }
        double* to = weights_.data();
        for (const SlotRange range : ranges)
            for (std::int64_t d = range.begin; d < range.end; ++d) {
                const Sums& now = sums_[groups_.of(d)];
                v_[d] -= slopes_[d] * (now.R - stamps_[d]);
                stamps_[d] = now.R;
                *to++ = now.P * v_[d];
            }
    }

    // Brings the residuals of sequence i, and with them s, to the current weights:
    // s += Φᵀ(residuals now − residuals kept).
    void visit(std::int64_t i) {
        sequence_->load(i);
        const std::int64_t n_weights = sequence_->n_weights(), n_residuals = sequence_->n_residuals();
        for (Buffer<double>* numbers : {&weights_, &gradient_, &trial_}) numbers->resize(n_weights);
        for (Buffer<double>* numbers : {&fresh_, &scratch_}) numbers->resize(n_residuals);
        read();
        const double loss = sequence_->differentiate(weights_.data(), fresh_.data());
        ++n_losses_;
        double* kept = residuals_.data() + residual_ptr_[i];
        for (std::int64_t k = 0; k < n_residuals; ++k) {
            scratch_[k] = fresh_[k] - kept[k];
            kept[k] = fresh_[k];
        }
        sequence_->gradient(scratch_.data(), gradient_.data());
        const auto& ranges = sequence_->ranges();
        step_kernels().add(ranges.data(), static_cast<std::int64_t>(ranges.size()), gradient_.data(), 1.0,
                           slopes_.data());
        if (visits_[i].lipschitz == 0) {  // the first visit: L_i begins at the mean of those known
            visits_[i].lipschitz =
                n_visited_ > 0 ? tree_.sum() / static_cast<double>(n_visited_) : kFirstEstimate;
            ++n_visited_;
        }
        visits_[i].loss = loss;
        search(i, loss);
        tree_.set(i, visits_[i].lipschitz);
    }

    // Doubles L_i until loss_i(w − g / L_i) ≤ loss_i(w) − |g|² / (2 L_i). After a success the next searches
    // are left out, 2^streak − 1 of them, the more the longer L_i has held.
    void search(std::int64_t i, double loss) {
        Visit& visit = visits_[i];
        if (visit.pause > 0) {
            --visit.pause;
            return;
        }
        const std::int64_t n = sequence_->n_weights();
        sequence_->gradient(fresh_.data(), gradient_.data());
        double slope = 0;  // |g|²
        for (std::int64_t k = 0; k < n; ++k) slope += gradient_[k] * gradient_[k];
        if (!(slope > kSmallSlope)) return;
        visit.lipschitz *= kShrink;
        for (int doublings = 0; doublings < kMostDoublings; ++doublings) {
            for (std::int64_t k = 0; k < n; ++k) trial_[k] = weights_[k] - gradient_[k] / visit.lipschitz;
            ++n_losses_;
            const double there = sequence_->differentiate(trial_.data(), scratch_.data());
            if (there <= loss - 0.5 * slope / visit.lipschitz) {
                visit.streak = doublings == 0 ? std::min(visit.streak + 1, kLongestStreak) : 0;
                visit.pause = std::exp2(visit.streak) - 1;
                return;
            }
            visit.lipschitz *= 2;
        }
    }

    // w ← (1 − α l2 / N) w − (α / m) s for all weights, by P and R.
    void step() {
        const auto n = static_cast<double>(source_.n_sequences()), m = static_cast<double>(n_visited_);
        const double strongest = groups_.l2.back() / n;
        const double rate = 0.5 / (tree_.largest() + strongest) + 0.5 / (tree_.sum() / m + strongest);
        bool small = false;
        for (std::size_t g = 0; g < sums_.size(); ++g) {
            sums_[g].P *= std::max(1 - rate * groups_.l2[g] / n, kLeastShrinkage);
            sums_[g].R += rate / m / sums_[g].P;
            small = small || sums_[g].P < kSmallestFactor;
        }
        if (small) fold();
    }

    // Brings all weights up to date, v = w, and begins P and R anew.
    void fold() {
        source_.each_slot_range([&](SlotRange range) {
            for (std::int64_t d = range.begin; d < range.end; ++d) {
                const Sums& now = sums_[groups_.of(d)];
                const double stamp = stamps_[sums_.size() == 1 ? range.begin : d];
                v_[d] = now.P * (v_[d] - slopes_[d] * (now.R - stamp));
            }
        });
        std::fill(stamps_.begin(), stamps_.end(), 0.0);
        std::fill(sums_.begin(), sums_.end(), Sums{});
    }

    struct Sums {
        double P = 1, R = 0;
    };

    const SequenceSource& source_;
    const PenaltyGroups groups_;
    const std::vector<std::int64_t>& residual_ptr_;  // [N + 1]
    const std::span<double> w_, s_;                  // [D]
    const std::span<double> residuals_;              // [residual_ptr_[N]]
    Visit* const visits_;                            // [N]
    double& n_losses_;
    Buffer<double> v_, slopes_;  // by slot
    NumberTree tree_;            // over L_i
    std::unique_ptr<SequenceLoss> sequence_;
    std::int64_t n_visited_ = 0;  // m
    std::vector<Sums> sums_;      // [groups]
    // R when a weight was last touched: kept where its range begins, or for each slot where there are groups.
    Buffer<double> stamps_;
    Buffer<double> weights_, gradient_, trial_;  // of the sequence that is visited
    Buffer<double> fresh_, scratch_;             // its residuals
};

}  // namespace

double SAGRule::run(const SequenceSource& source, const Penalty& penalty, const RuleState& state,
                    std::span<const std::int32_t> order, int n_threads) const {
    check_order(order, source.n_sequences(), -1);
    if (uniforms_.size() != 2 * order.size())
        throw std::invalid_argument("expected two uniform numbers for each step");
    Steps steps(source, penalty.l2, state, n_threads);
    double loss = 0;
    try {
        for (std::size_t k = 0; k < order.size(); ++k) {
            check_interruption();
            loss += steps.run(order[k], uniforms_.data() + 2 * k);
        }
    } catch (...) {  // interrupted: the steps so far count
        steps.give_back();
        throw;
    }
    steps.give_back();
    return loss;
}

}  // namespace crfkit
