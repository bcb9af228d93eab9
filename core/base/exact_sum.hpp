// Sums of doubles without any rounding.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstdint>

namespace crfkit {

// A sum of up to 2^62 finite doubles of any size, exact but for what is below 2^−128 (Kulisch 1971: a number
// of fixed point that is as long as the exponents of doubles ask for). For scores that lie so far apart that
// differences of doubles overflow, or lose what decides.
class ExactSum {
  public:
    ExactSum() = default;
    explicit ExactSum(double x) {
        int exponent = 0;
        const double fraction = std::frexp(std::abs(x), &exponent);  // |x| = fraction · 2^exponent
        auto digits = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
        int place = exponent - 53 + kFraction;
        if (place < 0) {
            digits = place > -64 ? digits >> -place : 0;
            place = 0;
        }
        words_[place / 64] = digits << place % 64;
        if (place % 64 > 11) words_[place / 64 + 1] = digits >> (64 - place % 64);
        if (x < 0) negate();
    }

    ExactSum& operator+=(const ExactSum& other) {
        unsigned __int128 carry = 0;
        for (int i = 0; i < kWords; ++i) {
            carry += static_cast<unsigned __int128>(words_[i]) + other.words_[i];
            words_[i] = static_cast<std::uint64_t>(carry);
            carry >>= 64;
        }
        return *this;
    }
    ExactSum& operator-=(const ExactSum& other) {
        ExactSum less = other;
        less.negate();
        return *this += less;
    }
    friend ExactSum operator+(ExactSum a, const ExactSum& b) { return a += b; }
    friend ExactSum operator-(ExactSum a, const ExactSum& b) { return a -= b; }
    bool operator==(const ExactSum&) const = default;
    std::strong_ordering operator<=>(const ExactSum& other) const {
        const bool below = is_negative(), other_below = other.is_negative();
        if (below != other_below) return below ? std::strong_ordering::less : std::strong_ordering::greater;
        for (int i = kWords - 1; i > 0; --i)
            if (words_[i] != other.words_[i]) return words_[i] <=> other.words_[i];
        return words_[0] <=> other.words_[0];
    }

    // The nearest double but for one or two units in its last place; infinite beyond the largest.
    double value() const {
        ExactSum size = *this;
        if (is_negative()) size.negate();
        int top = kWords - 1;
        while (top > 0 && size.words_[top] == 0) --top;
        double sum = 0;
        for (int i = std::max(0, top - 2); i <= top; ++i)
            sum += std::ldexp(static_cast<double>(size.words_[i]), 64 * i - kFraction);
        return is_negative() ? -sum : sum;
    }

  private:
    static constexpr int kFraction = 128, kWords = 19;  // 2^1088 and below

    bool is_negative() const { return words_[kWords - 1] >> 63; }
    void negate() {
        bool carry = true;
        for (std::uint64_t& word : words_) {
            word = ~word + carry;
            carry = carry && word == 0;
        }
    }

    std::array<std::uint64_t, kWords> words_{};  // two's complement, the lowest digits first
};

}  // namespace crfkit
