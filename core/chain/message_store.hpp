// The messages of a data set at one weight vector, kept for Hessian products: these need no scores of that
// vector and no exp then. Memory is bounded; what does not fit is worked out again for each product, to the
// same bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "data/annotation.hpp"
#include "data/design.hpp"
#include "kernels/kernels.hpp"

namespace crfkit {

template <class Real>
class MessageStore {
  public:
    static constexpr std::int64_t kMostBytes = std::int64_t(1) << 30;

    MessageStore(const Design& design, const Annotation& gold, std::int64_t stride)
        : stride_(stride), ptr_(static_cast<std::size_t>(design.n_sequences()), -1) {
        const std::int64_t row_bytes = (3 * stride + 1) * static_cast<std::int64_t>(sizeof(Real));
        std::int64_t n_rows = 0;
        for (std::int64_t n = 0; n < design.n_sequences(); ++n) {
            const std::int64_t first = design.sequence_ptr[n], last = design.sequence_ptr[n + 1];
            const std::int64_t rows = (gold.complete(first, last) ? 1 : 2) * (last - first);
            if ((n_rows + rows) * row_bytes > kMostBytes) continue;
            ptr_[n] = n_rows;
            n_rows += rows;
        }
        for (Buffer<Real>* rows : {&states_, &forward_, &backward_}) rows->resize(n_rows * stride);
        scale_.resize(n_rows);
        valid_.assign(ptr_.size(), 0);
    }

    // Whether the store has memory for a sequence, and whether what is there holds at the remembered weights.
    bool has_space(std::int64_t n) const { return ptr_[n] >= 0; }
    bool holds(std::int64_t n) const { return valid_[n]; }
    void set(std::int64_t n, bool valid) { valid_[n] = valid; }

    // Where the messages of a sequence are: with all its labels (first), and with those that its annotation
    // allows. `pushed` and `probs` are the caller's.
    Messages<Real> messages(std::int64_t n, std::int64_t n_positions, bool first, Real* pushed, Real* probs,
                            Real weight) {
        const std::int64_t row = ptr_[n] + (first ? 0 : n_positions), at = row * stride_;
        return {states_.data() + at,
                forward_.data() + at,
                backward_.data() + at,
                pushed,
                scale_.data() + row,
                probs,
                weight};
    }

    // Asks the memory for a sequence that comes next, while there is other work to do.
    void fetch(std::int64_t n, std::int64_t n_positions) const {
        if (ptr_[n] < 0) return;
        constexpr std::int64_t line = 64 / sizeof(Real);
        const std::int64_t begin = ptr_[n] * stride_,
                           end = begin + std::min(n_positions, kMostFetched) * stride_;
        for (std::int64_t i = begin; i < end; i += line)
            for (const Buffer<Real>* rows : {&states_, &forward_, &backward_})
                __builtin_prefetch(rows->data() + i, 0, 2);
    }

  private:
    static constexpr std::int64_t kMostFetched = 256;  // positions

    std::int64_t stride_;                       // S
    std::vector<std::int64_t> ptr_;             // [N] first row of a sequence, −1 where it is not kept
    std::vector<unsigned char> valid_;          // [N] one byte each: threads write side by side
    Buffer<Real> states_, forward_, backward_;  // [rows, S]
    Buffer<Real> scale_;                        // [rows]
};

}  // namespace crfkit
