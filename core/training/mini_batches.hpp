// A pass in mini-batches: gradients of several sequences at a time, on several threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "training/sequence_loss.hpp"

namespace crfkit {

// The sum of the gradients of a batch, and the ranges that its sequences touch, each once.
class BatchGradient {
  public:
    // Begins at 0 for all slots.
    void reset(std::int64_t n_slots);
    // Adds the gradient of one sequence, range after range.
    void add(const std::vector<SlotRange>& ranges, const double* gradient);
    // Calls use(ranges, gradient, size) with all that was added, and begins at 0 again.
    template <class Function>
    void release(const Function& use) {
        gather();
        use(ranges_, gathered_.data(), size_);
        clear();
    }

  private:
    void gather();
    void clear();

    Buffer<double> sum_;             // by slot
    std::vector<std::uint8_t> met_;  // by the slot where a range begins: whether it is among ranges_
    std::vector<SlotRange> ranges_;
    std::int64_t size_ = 0;    // slots of ranges_
    Buffer<double> gathered_;  // [size_]
};

// The sequences of a pass: order[k·batch]..order[(k+1)·batch − 1] make step k. Their losses and gradients are
// all taken before the step and add up in this order: the same bits for any number of threads. However large
// a batch, few sequences are in memory at a time.
struct MiniBatches {
    static constexpr std::int64_t kMostAtOnce = 64;
    std::span<const std::int32_t> order;
    std::int64_t batch;
    int n_threads;

    // Throws std::invalid_argument where the order names sequences that do not exist.
    void check(const SequenceSource& source) const;
    std::int64_t n_steps() const { return (static_cast<std::int64_t>(order.size()) + batch - 1) / batch; }

    // Takes all steps, by a method that has
    //   begin_step(k)
    //   read(ranges, to)                  the weights before the step, of one sequence
    //   move(ranges, weights, gradient)   adds the gradient of one sequence; no weight moves before end_step
    //                                   where a batch has several
    //   end_step(n_sequences)
    //   give_back()                     after the last step, or after an exception: the state so far
    // Returns the sum of the losses.
    template <class Method>
    double run(const SequenceSource& source, Method& method) const {
        double loss;
        try {
            loss = take_steps(source, method);
        } catch (...) {
            method.give_back();
            throw;
        }
        method.give_back();
        return loss;
    }

  private:
    // One sequence of a step.
    struct Slot {
        std::unique_ptr<SequenceLoss> sequence;
        Buffer<double> weights, gradient, residuals;
        double loss = 0;

        template <class Method>
        void differentiate(std::int64_t n, const Method& method) {
            sequence->load(n);
            weights.resize(sequence->n_weights());
            gradient.resize(sequence->n_weights());
            method.read(sequence->ranges(), weights.data());
            residuals.resize(sequence->n_residuals());
            loss = sequence->differentiate(weights.data(), residuals.data());
            sequence->gradient(residuals.data(), gradient.data());
        }
    };

    template <class Method>
    double take_steps(const SequenceSource& source, Method& method) const {
        const auto n = static_cast<std::int64_t>(order.size());
        const std::int64_t n_slots = std::min({batch, n, kMostAtOnce});
        std::vector<Slot> slots(static_cast<std::size_t>(n_slots));
        for (Slot& slot : slots) slot.sequence = source.open();
        double loss = 0;
        for (std::int64_t k = 0; k < n_steps(); ++k) {
            const std::int64_t first = k * batch, size = std::min(batch, n - first);
            method.begin_step(k);
            for (std::int64_t at = first; at < first + size; at += n_slots) {
                const std::int64_t here = std::min(n_slots, first + size - at);
                parallel_for(here, n_threads,
                             [&](std::int64_t i, int) { slots[i].differentiate(order[at + i], method); });
                for (std::int64_t i = 0; i < here; ++i) {
                    method.move(slots[i].sequence->ranges(), slots[i].weights.data(),
                                slots[i].gradient.data());
                    loss += slots[i].loss;
                }
            }
            method.end_step(size);
        }
        return loss;
    }
};

}  // namespace crfkit
