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

inline void table_scale(double* __restrict x, double f, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[j] *= f;
}

inline void table_add(double* __restrict x, const double* __restrict y, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[j] += y[j];
}

inline void table_shift(double* __restrict x, double f, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[j] += f;
}

inline void table_product(double* __restrict x, const double* __restrict a, const double* __restrict b,
                          std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[j] = a[j] * b[j];
}

inline void table_add_product(double* __restrict x, const double* __restrict a, const double* __restrict b,
                              std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) x[j] += a[j] * b[j];
}

// Short runs have a length that is known when this is compiled; 0: any length.
template <int kLength, class Step>
[[gnu::always_inline]] inline void each_run(const Runs& runs, const Step& step) {
    const std::int64_t length = kLength ? kLength : runs.length;
    for (std::int64_t r = 0; r < runs.n; ++r) step(r * length, runs.starts[r], length);
}

template <class Step>
[[gnu::always_inline]] inline void for_runs(const Runs& runs, const Step& step) {
    switch (runs.length) {
        case 1:
            return each_run<1>(runs, step);
        case 2:
            return each_run<2>(runs, step);
        case 4:
            return each_run<4>(runs, step);
        case 8:
            return each_run<8>(runs, step);
        case 16:
            return each_run<16>(runs, step);
        default:
            return each_run<0>(runs, step);
    }
}

template <class Join>
[[gnu::always_inline]] inline void join_runs(double* __restrict x, const double* __restrict y,
                                             const Runs& runs, const Join& join) {
    if (runs.constant)
        for_runs(runs, [=](std::int64_t at, std::int64_t start, std::int64_t length) {
            const double entry = y[start];
            for (std::int64_t j = 0; j < length; ++j) join(x[at + j], entry);
        });
    else
        for_runs(runs, [=](std::int64_t at, std::int64_t start, std::int64_t length) {
            for (std::int64_t j = 0; j < length; ++j) join(x[at + j], y[start + j]);
        });
}

inline void table_multiply_runs(double* x, const double* y, const Runs& runs) {
    join_runs(x, y, runs, [](double& a, double b) { a *= b; });
}

inline void table_add_runs(double* x, const double* y, const Runs& runs) {
    join_runs(x, y, runs, [](double& a, double b) { a += b; });
}

inline void table_copy_runs(double* x, const double* y, const Runs& runs) {
    join_runs(x, y, runs, [](double& a, double b) { a = b; });
}

inline void table_project_runs(const double* __restrict x, double* __restrict y, const Runs& runs) {
    if (runs.constant)
        for_runs(runs, [=](std::int64_t at, std::int64_t start, std::int64_t length) {
            double sums[4] = {};
            std::int64_t j = 0;
            for (; j + 4 <= length; j += 4)
                for (int lane = 0; lane < 4; ++lane) sums[lane] += x[at + j + lane];
            double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
            for (; j < length; ++j) sum += x[at + j];
            y[start] += sum;
        });
    else
        for_runs(runs, [=](std::int64_t at, std::int64_t start, std::int64_t length) {
            for (std::int64_t j = 0; j < length; ++j) y[start + j] += x[at + j];
        });
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
