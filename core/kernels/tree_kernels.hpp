// Kernels of trees, on rows of any length and alignment. Included only by kernels.cpp, like simd.hpp.
#pragma once

#include <cstdint>

#include "base/simd.hpp"
#include "kernels/tree_rows.hpp"

namespace crfkit::CRFKIT_ISA {

using Loose = double __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
inline constexpr std::int64_t kWidth = Lanes<double>::count;

inline Vector<double> load_loose(const double* p) { return *reinterpret_cast<const Loose*>(p); }
inline void store_loose(double* p, Vector<double> v) { *reinterpret_cast<Loose*>(p) = v; }

inline void weigh(const double* x, const double* shift, std::int64_t n, double* out) {
    std::int64_t j = 0;
    for (; j + kWidth <= n; j += kWidth)
        store_loose(out + j, exp_nonpositive(load_loose(x + j) - load_loose(shift + j)));
    if (j == n) return;
    double rest[kWidth] = {};
    for (std::int64_t i = j; i < n; ++i) rest[i - j] = x[i] - shift[i];
    store_loose(rest, exp_nonpositive(load_loose(rest)));
    for (std::int64_t i = j; i < n; ++i) out[i] = rest[i - j];
}

inline void add_rows(double* rows, std::int64_t stride, std::int64_t n_rows, const double* factors,
                     const double* x, std::int64_t n) {
    for (std::int64_t i = 0; i < n_rows; ++i, rows += stride) {
        double* __restrict y = rows;
        const double f = factors[i];
        std::int64_t j = 0;
        for (; j + kWidth <= n; j += kWidth) store_loose(y + j, load_loose(y + j) + f * load_loose(x + j));
        for (; j < n; ++j) y[j] += f * x[j];
    }
}

inline double add_rows_checked(double* rows, std::int64_t stride, std::int64_t n_rows, const double* factors,
                               const double* x, std::int64_t n) {
    double smallest = 1.0;
    for (std::int64_t i = 0; i < n_rows; ++i, rows += stride) {
        const double f = factors[i];
        if (f == 0) continue;
        for (std::int64_t j = 0; j < n; ++j) {
            rows[j] += f * x[j];
            const double seen = x[j] > 0 ? rows[j] : 1.0;
            smallest = seen < smallest ? seen : smallest;
        }
    }
    return smallest;
}

// Sums of up to four vectors stay in registers while the rows go by.
template <int kVectors>
inline void combine_block(const double* rows, std::int64_t stride, std::int64_t n_rows, const double* factors,
                          double constant, double* out) {
    Vector<double> sums[kVectors];
    CRFKIT_UNROLL
    for (int v = 0; v < kVectors; ++v) sums[v] = broadcast(constant);
    for (std::int64_t i = 0; i < n_rows; ++i, rows += stride) {
        const double f = factors[i];
        CRFKIT_UNROLL
        for (int v = 0; v < kVectors; ++v) sums[v] += f * load_loose(rows + v * kWidth);
    }
    CRFKIT_UNROLL
    for (int v = 0; v < kVectors; ++v) store_loose(out + v * kWidth, sums[v]);
}

inline void combine_rows(const double* rows, std::int64_t stride, std::int64_t n_rows, const double* factors,
                         double constant, std::int64_t n, double* out) {
    std::int64_t j = 0;
    for (; j + 4 * kWidth <= n; j += 4 * kWidth)
        combine_block<4>(rows + j, stride, n_rows, factors, constant, out + j);
    for (; j + kWidth <= n; j += kWidth)
        combine_block<1>(rows + j, stride, n_rows, factors, constant, out + j);
    for (; j < n; ++j) {
        double sum = constant;
        for (std::int64_t i = 0; i < n_rows; ++i) sum += factors[i] * rows[i * stride + j];
        out[j] = sum;
    }
}

inline double combine_rows_checked(const double* rows, std::int64_t stride, std::int64_t n_rows,
                                   const double* factors, double constant, std::int64_t n, double* out) {
    combine_rows(rows, stride, n_rows, factors, constant, n, out);
    double smallest = 1.0;
    for (std::int64_t j = 0; j < n; ++j) {
        bool some = constant > 0;
        for (std::int64_t i = 0; i < n_rows && !some; ++i) some = factors[i] > 0 && rows[i * stride + j] > 0;
        if (some && out[j] < smallest) smallest = out[j];
    }
    return smallest;
}

inline void multiply_rows(const double* rows, std::int64_t stride, std::int64_t n_rows, const double* x,
                          std::int64_t n, double* out) {
    for (std::int64_t i = 0; i < n_rows; ++i, rows += stride) {
        Vector<double> even = broadcast(0.0), odd = broadcast(0.0);
        std::int64_t j = 0;
        for (; j + 2 * kWidth <= n; j += 2 * kWidth) {
            even += load_loose(rows + j) * load_loose(x + j);
            odd += load_loose(rows + j + kWidth) * load_loose(x + j + kWidth);
        }
        even += odd;
        double sum = 0;
        for (; j < n; ++j) sum += rows[j] * x[j];
        for (int lane = 0; lane < kWidth; ++lane) sum += even[lane];
        out[i] = sum;
    }
}

inline void merge_rows(double* into, double into_less, const double* from, double from_less, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) {
        const double a = into[j] - into_less, b = from[j] - from_less;
        into[j] = a > b ? a : b;
    }
}

inline std::int64_t largest_of(const double* x, std::int64_t n) {
    std::int64_t j = 0;
    double top = x[0];
    if (n >= kWidth) {
        Vector<double> tops = load_loose(x);
        for (j = kWidth; j + kWidth <= n; j += kWidth) tops = larger(tops, load_loose(x + j));
        for (int lane = 0; lane < kWidth; ++lane) top = tops[lane] > top ? tops[lane] : top;
    }
    for (; j < n; ++j) top = x[j] > top ? x[j] : top;
    std::int64_t place = 0;
    while (x[place] < top) ++place;
    return place;
}

}  // namespace crfkit::CRFKIT_ISA
