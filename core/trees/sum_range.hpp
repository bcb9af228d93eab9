// Which sums over projective trees plain doubles hold.
#pragma once

#include <cmath>
#include <cstdint>

namespace crfkit {

// From here on the number of trees may overflow.
inline constexpr std::int64_t kMostWords = 340;

// log of 27 / 4: there are less than 6.75^n trees of n words, binomial(3n, n) / (2n + 1), with one root
// fewer.
inline const double kLogTrees = std::log(6.75);

// Whether no sum over trees of n words overflows where weights are at most exp(highest): none exceeds
// (6.75 exp(highest))^n.
inline bool stays_finite(std::int64_t n_words, double highest) {
    return static_cast<double>(n_words + 1) * (kLogTrees + highest) < 700;
}

// Whether Z is so large that nothing which was lost matters: of weights at most exp(highest).
//
// A number that underflows, or that becomes 0 because it would be subnormal, is off by less than 2^−1022. It
// is a term of an inside sum or of an outside sum, of which there are at most 4 (n + 1)³, and enters Z, or Z
// times a probability, multiplied by weights of the other parts of trees, each tree once: by at most
// (6.75 exp(highest))^n. All of that together is less than 2^−53 of Z where this holds.
inline bool keeps_all_digits(double partition, std::int64_t n_words, double highest = 0) {
    const double n = static_cast<double>(n_words) + 1;
    const double log_lost = -1022 * std::log(2.0) + n * (kLogTrees + highest) + std::log(4 * n * n * n);
    return partition > 0 && std::log(partition) >= log_lost + 53 * std::log(2.0);
}

}  // namespace crfkit
