// Sums of doubles that have the same bits in any order.
//
// Each term is rounded to a multiple of q, a power of two, before it is added. Doubles hold all multiples of
// q up to 2^53 q: as long as no partial sum exceeds that, additions are exact, and neither their order nor
// how terms are grouped changes a bit. With c = 1.5 · 2^52 q, the doubles around c are the multiples of q, so
//
//   round(x) = (x + c) − c    for |x| ≤ 2^51 q
//
// (A little beyond, x is rounded to a multiple of q or of q / 2: still the same for each x, and small
// enough.)
#pragma once

#include <cmath>

namespace crfkit {

class SumGrid {
  public:
    // Rounds nothing: the order matters.
    SumGrid() = default;
    // For terms whose absolute values add up to `bound` > 0 at most, give or take their rounding.
    explicit SumGrid(double bound) {
        int exponent = 0;
        std::frexp(bound, &exponent);            // bound < 2^exponent
        shift_ = std::ldexp(1.5, exponent + 1);  // 2^52 q = 2^(exponent + 1): twice the bound, and more
    }

    // Always inlined: kernels are compiled several times, for different processors.
    [[gnu::always_inline]] double round(double x) const { return (x + shift_) - shift_; }
    // c, for those who round vectors; 0 where nothing is rounded.
    [[gnu::always_inline]] double shift() const { return shift_; }

  private:
    double shift_ = 0;
};

}  // namespace crfkit
