// Kernels of stochastic steps. Included only by kernels.cpp, like simd.hpp: plain loops, which the compiler
// makes vectors of.
#pragma once

#include <cstdint>

#include "base/simd.hpp"
#include "kernels/update_kernels.hpp"

namespace crfkit::CRFKIT_ISA {

// Prefetches a range that is used soon.
inline void fetch(const double* numbers, SlotRange range) {
    constexpr std::int64_t most = 64;
    const std::int64_t end = range.end - range.begin < most ? range.end : range.begin + most;
    for (std::int64_t i = range.begin; i < end; i += 8) __builtin_prefetch(numbers + i);
}
inline constexpr std::int64_t kAhead = 8;  // ranges

// each(slot, place in the local array) for the slots of all ranges.
template <class Function>
inline void each_slot(const SlotRange* ranges, std::int64_t n, Function each) {
    std::int64_t at = 0;
    for (std::int64_t r = 0; r < n; ++r) {
        const std::int64_t begin = ranges[r].begin, length = ranges[r].end - begin;
        if (length == 1) {
            each(begin, at++);
            continue;
        }
#pragma GCC ivdep
        for (std::int64_t i = 0; i < length; ++i) each(begin + i, at + i);
        at += length;
    }
}

inline double soft(double x, double a) { return x > a ? x - a : x < -a ? x + a : 0.0; }

inline void read_slots(const SlotRange* ranges, std::int64_t n, const double* v, double factor, double* to) {
    for (std::int64_t r = 0; r < n; ++r) {
        if (r + kAhead < n) fetch(v, ranges[r + kAhead]);
        each_slot(ranges + r, 1, [=](std::int64_t d, std::int64_t i) { to[i] = factor * v[d]; });
        to += ranges[r].end - ranges[r].begin;
    }
}

inline void add_to_slots(const SlotRange* ranges, std::int64_t n, const double* from, double factor,
                         double* v) {
    each_slot(ranges, n, [=](std::int64_t d, std::int64_t i) { v[d] += factor * from[i]; });
}

inline void settle(double* v, double* total, double sum, double shrink, std::int64_t n) {
    if (total)
#pragma GCC ivdep
        for (std::int64_t i = 0; i < n; ++i) total[i] += sum * v[i];
    if (shrink > 0)
        for (std::int64_t i = 0; i < n; ++i) v[i] = soft(v[i], shrink);
}

// w = −soft(z, l1 C) / (√G / rate + l2 C)
inline double adaptive_weight(const AdaptiveWeights& a, std::int64_t d, double inverse_rate, double l1,
                              double l2) {
    return -soft(a.z[d], l1 * a.passes) / (a.root[d] * inverse_rate + l2 * a.passes);
}

inline void read_adaptive(const SlotRange* ranges, std::int64_t n, const AdaptiveWeights& a, double* to) {
    const AdaptiveWeights weights = a;
    const double inverse = 1 / a.rate, l1 = a.l1[0], l2 = a.l2[0];
    if (!a.l1_each && !a.l2_each)
        each_slot(ranges, n, [=](std::int64_t d, std::int64_t i) {
            to[i] = adaptive_weight(weights, d, inverse, l1, l2);
        });
    else
        each_slot(ranges, n, [=](std::int64_t d, std::int64_t i) {
            to[i] = adaptive_weight(weights, d, inverse, weights.l1_each ? weights.l1[d] : l1,
                                    weights.l2_each ? weights.l2[d] : l2);
        });
}

// z += g − (√(G + g²) − √G) / rate · w
inline void move_adaptive(const SlotRange* ranges, std::int64_t n, const AdaptiveWeights& a, const double* w,
                          const double* g) {
    double *z = a.z, *root = a.root;
    const double inverse = 1 / a.rate;
    each_slot(ranges, n, [=](std::int64_t d, std::int64_t i) {
        const double before = root[d], after = __builtin_sqrt(before * before + g[i] * g[i]);
        z[d] += g[i] - (after - before) * inverse * w[i];
        root[d] = after;
    });
}

inline void read_late(const SlotRange* ranges, std::int64_t n, const LateWeights& late, double* to) {
    double* v = late.v;
    const double* slopes = late.slopes;
    const double P = late.P;
    for (std::int64_t r = 0; r < n; ++r) {
        const std::int64_t length = ranges[r].end - ranges[r].begin;
        if (r + kAhead < n) {
            fetch(v, ranges[r + kAhead]);
            fetch(slopes, ranges[r + kAhead]);
        }
        const double steps = late.R - late.stamps[ranges[r].begin];
        late.stamps[ranges[r].begin] = late.R;
        each_slot(ranges + r, 1, [=](std::int64_t d, std::int64_t i) {
            v[d] -= slopes[d] * steps;
            to[i] = P * v[d];
        });
        to += length;
    }
}

inline void close_gaps(const std::int32_t* rows, std::int64_t n, std::int32_t stride,
                       const std::int8_t* exists, double* table) {
    constexpr int lanes = Lanes<double>::count;
    using Flags = signed char __attribute__((vector_size(lanes), aligned(1), may_alias));
    for (std::int64_t u = 0; u < n; ++u, table += stride) {
        const std::int8_t* row = exists + static_cast<std::int64_t>(rows[u]) * stride;
        for (std::int32_t b = 0; b < stride; b += lanes) {
            const Flags flags = *reinterpret_cast<const Flags*>(row + b);
            store<double>(table + b, load(table + b) * __builtin_convertvector(flags, Vector<double>));
        }
    }
}

}  // namespace crfkit::CRFKIT_ISA
