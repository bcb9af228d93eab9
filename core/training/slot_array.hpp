// An array of a rule's state by slot.
#pragma once

#include <cstdint>
#include <span>

#include "base/buffer.hpp"
#include "training/sequence_loss.hpp"

namespace crfkit {

// Where slots are weights, the array itself; otherwise a copy by slot, until it is given back.
class SlotArray {
  public:
    // numbers [D], or nothing; `other` is for slots that belong to no weight. The source must outlive it.
    SlotArray(const SequenceSource& source, std::span<double> numbers, double other)
        : source_(source), numbers_(numbers), slots_(numbers.data()) {
        if (numbers.empty() || source.slots_are_weights()) return;
        copy_.resize(source.n_slots());
        source.pack(numbers.data(), other, copy_.data());
        slots_ = copy_.data();
    }
    SlotArray(const SlotArray&) = delete;
    SlotArray& operator=(const SlotArray&) = delete;

    double* data() const { return slots_; }
    double& operator[](std::int64_t slot) const { return slots_[slot]; }
    // numbers ← slots
    void give_back() const {
        if (copy_.size() > 0) source_.unpack(slots_, numbers_.data());
    }

  private:
    const SequenceSource& source_;
    const std::span<double> numbers_;
    Buffer<double> copy_;
    double* slots_;
};

}  // namespace crfkit
