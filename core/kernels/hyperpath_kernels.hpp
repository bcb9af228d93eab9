// Kernels of hyperpaths, on rows of any length and alignment. Included only by kernels.cpp, like simd.hpp.
#pragma once

#include <cstdint>

#include "base/simd.hpp"
#include "kernels/hyperpath_rows.hpp"
#include "kernels/tree_kernels.hpp"

namespace crfkit::CRFKIT_ISA {

inline bool weigh_within(const double* x, std::int64_t n, double bound, double* out) {
    const double absent = -__builtin_inf();
    const Vector<double> low = broadcast(-bound), high = broadcast(bound), absents = broadcast(absent);
    Vector<double> outside{};  // 1 in a lane that has met a score outside of the bounds
    std::int64_t j = 0;
    for (; j + kWidth <= n; j += kWidth) {
        const Vector<double> v = load_loose(x + j);
        // exp_nonpositive holds for positive numbers too, as long as exp does not overflow.
        store_loose(out + j, exp_nonpositive(v));
        const Vector<double> one = broadcast(1.0);
        outside = v == absents ? outside : (v >= low ? (v <= high ? outside : one) : one);
    }
    bool within = !(sum<double>(outside) > 0);
    if (j == n) return within;
    double rest[kWidth] = {};
    for (std::int64_t i = j; i < n; ++i) {
        rest[i - j] = x[i];
        within = within && (x[i] == absent || (x[i] >= -bound && x[i] <= bound));
    }
    store_loose(rest, exp_nonpositive(load_loose(rest)));
    for (std::int64_t i = j; i < n; ++i) out[i] = rest[i - j];
    return within;
}

}  // namespace crfkit::CRFKIT_ISA
