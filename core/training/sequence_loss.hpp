// One sequence's share of the objective, by the weights that the sequence touches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kernels/update_kernels.hpp"

namespace crfkit {

// Goes to one sequence after the other and knows, for each, the weights that it touches: every weight once,
// in a fixed order. Weights and gradients [n_weights()] follow this order, range after range; they and
// residuals are aligned as a Buffer is. One thread at a time.
class SequenceLoss {
  public:
    virtual ~SequenceLoss() = default;

    // Goes to sequence n; the questions below are about it.
    virtual void load(std::int64_t n) = 0;
    // How many residuals it has: one for each part that is scored.
    virtual std::int64_t n_residuals() const = 0;
    // weight · (log Z − log Z_gold) at these weights, and its derivatives by the scores of the parts.
    virtual double differentiate(const double* weights, double* residuals) = 0;
    // gradient [n_weights()] = Φᵀ residuals, which may be those of other weights, or a difference of such.
    virtual void gradient(const double* residuals, double* gradient) = 0;

    const std::vector<SlotRange>& ranges() const { return ranges_; }
    std::int64_t n_weights() const { return n_weights_; }

  protected:
    void clear() {
        ranges_.clear();
        n_weights_ = 0;
    }
    void touch(std::int64_t begin, std::int64_t end) {
        if (begin == end) return;
        ranges_.push_back({begin, end});
        n_weights_ += end - begin;
    }

  private:
    std::vector<SlotRange> ranges_;
    std::int64_t n_weights_ = 0;
};

// A data set of such sequences. Weights w [D] have slots, not always in the same order; slots that belong to
// no weight are 0 in every gradient.
class SequenceSource {
  public:
    virtual ~SequenceSource() = default;
    virtual std::int64_t n_sequences() const = 0;
    virtual std::int64_t n_slots() const = 0;
    // Whether slot d is weight d for all of them, so that steps can be taken in the arrays of weights.
    virtual bool slots_are_weights() const { return false; }
    // slots ← w, and `other` where a slot belongs to no weight; w ← slots.
    virtual void pack(const double* w, double other, double* slots) const = 0;
    virtual void unpack(const double* slots, double* w) const = 0;
    // All ranges that sequences may touch, and the slots between them as ranges of their own; none is empty.
    virtual void each_slot_range(const std::function<void(SlotRange)>& function) const = 0;
    // A new one for one thread; the source must outlive it.
    virtual std::unique_ptr<SequenceLoss> open() const = 0;

    // Where the residuals of each sequence begin when all stand in one array, [N + 1].
    const std::vector<std::int64_t>& residual_ptr(int n_threads) const;

    // The strengths of a penalty, one for all weights or one for each, for slots.
    std::vector<double> pack_strengths(std::span<const double> strengths) const {
        if (strengths.size() == 1) return {strengths[0]};
        std::vector<double> slots(static_cast<std::size_t>(n_slots()));
        pack(strengths.data(), strengths[0], slots.data());
        return slots;
    }

  private:
    mutable std::vector<std::int64_t> residual_ptr_;  // from the first question on
};

}  // namespace crfkit
