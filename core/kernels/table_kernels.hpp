// Kernels of tables, on rows of any length and alignment. Included only by kernels.cpp, like simd.hpp.
#pragma once

#include <cstdint>

#include "base/simd.hpp"
#include "kernels/tables.hpp"
#include "kernels/tree_kernels.hpp"

namespace crfkit::CRFKIT_ISA {

inline void table_multiply(double* __restrict x, const double* __restrict y, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[j] *= y[j];
}

inline void table_multiply_listed(double* __restrict x, const double* __restrict y,
                                  const std::int32_t* __restrict places, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[j] *= y[places[j]];
}

inline void table_scale(double* __restrict x, double f, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[j] *= f;
}

inline void table_add(double* __restrict x, const double* __restrict y, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[j] += y[j];
}

inline void table_add_listed(double* __restrict x, const double* __restrict y,
                             const std::int32_t* __restrict places, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[j] += y[places[j]];
}

inline void table_shift(double* __restrict x, double f, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[j] += f;
}

inline void table_add_product(double* __restrict x, const double* __restrict a, const double* __restrict b,
                              std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[j] += a[j] * b[j];
}

inline void table_scatter(double* __restrict x, const double* __restrict y,
                          const std::int32_t* __restrict places, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[places[j]] += y[j];
}

inline double table_sum(const double* x, std::int64_t n) {
    Vector<double> sums[2] = {};
    std::int64_t j = 0;
    for (; j + 2 * kWidth <= n; j += 2 * kWidth) {
        sums[0] += load_loose(x + j);
        sums[1] += load_loose(x + j + kWidth);
    }
    double total = sum<double>(sums[0] + sums[1]);
    for (; j < n; ++j) total += x[j];
    return total;
}

inline void table_raise(double* __restrict x, const double* __restrict y, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[j] = x[j] < y[j] ? y[j] : x[j];
}

inline void table_exponentiate(double* x, std::int64_t n) {
    std::int64_t j = 0;
    for (; j + kWidth <= n; j += kWidth) store_loose(x + j, exp_nonpositive(load_loose(x + j)));
    if (j == n) return;
    double rest[kWidth] = {};
    for (std::int64_t i = j; i < n; ++i) rest[i - j] = x[i];
    store_loose(rest, exp_nonpositive(load_loose(rest)));
    for (std::int64_t i = j; i < n; ++i) x[i] = rest[i - j];
}

inline void table_range(const double* x, std::int64_t n, double* largest, double* smallest) {
    const double infinity = __builtin_inf();
    Vector<double> highs{}, lows = broadcast(infinity);
    std::int64_t j = 0;
    for (; j + kWidth <= n; j += kWidth) {
        const Vector<double> v = load_loose(x + j);
        highs = larger(highs, v);
        const Vector<double> positive = v > Vector<double>{} ? v : broadcast(infinity);
        lows = positive < lows ? positive : lows;
    }
    double high = 0, low = infinity;
    for (int lane = 0; lane < kWidth; ++lane) {
        high = highs[lane] > high ? highs[lane] : high;
        low = lows[lane] < low ? lows[lane] : low;
    }
    for (; j < n; ++j) {
        high = x[j] > high ? x[j] : high;
        low = x[j] > 0 && x[j] < low ? x[j] : low;
    }
    *largest = high;
    *smallest = low;
}

}  // namespace crfkit::CRFKIT_ISA
