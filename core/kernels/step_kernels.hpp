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

// z and root of ranges that are used soon.
inline void fetch_adaptive(const SlotRange* ranges, std::int64_t r, std::int64_t n,
                           const AdaptiveWeights& a) {
    constexpr std::int64_t ahead = 4 * kAhead;  // many ranges are single slots
    if (r + ahead >= n) return;
    fetch(a.z, ranges[r + ahead]);
    fetch(a.root, ranges[r + ahead]);
}

// w = −soft(z, l1 C) / (√G / rate + l2 C), with l1(slot) and l2(slot).
template <class First, class Second>
inline void read_with(const SlotRange* ranges, std::int64_t n, const AdaptiveWeights& a, First l1, Second l2,
                      double* to) {
    const double *z = a.z, *root = a.root, inverse = 1 / a.rate, passes = a.passes;
    for (std::int64_t r = 0; r < n; ++r) {
        fetch_adaptive(ranges, r, n, a);
        each_slot(ranges + r, 1, [=](std::int64_t d, std::int64_t i) {
            to[i] = -soft(z[d], l1(d) * passes) / (root[d] * inverse + l2(d) * passes);
        });
        to += ranges[r].end - ranges[r].begin;
    }
}

// use(strength of a slot), by the kind of the strengths.
template <class Use>
inline void with_strengths(const SlotStrengths& of, Use use) {
    const double* l = of.l;
    const std::uint8_t* groups = of.groups;
    const double all = l[0];
    if (groups)
        use([=](std::int64_t d) { return l[groups[d]]; });
    else if (of.each)
        use([=](std::int64_t d) { return l[d]; });
    else
        use([=](std::int64_t) { return all; });
}

inline void read_adaptive(const SlotRange* ranges, std::int64_t n, const AdaptiveWeights& a, double* to) {
    with_strengths(
        a.l1, [&](auto l1) { with_strengths(a.l2, [&](auto l2) { read_with(ranges, n, a, l1, l2, to); }); });
}

// z += g − (√(G + g²) − √G) / rate · w
inline void move_adaptive(const SlotRange* ranges, std::int64_t n, const AdaptiveWeights& a, const double* w,
                          const double* g) {
    double *z = a.z, *root = a.root;
    const double inverse = 1 / a.rate;
    for (std::int64_t r = 0; r < n; ++r) {
        fetch_adaptive(ranges, r, n, a);
        each_slot(ranges + r, 1, [=](std::int64_t d, std::int64_t i) {
            const double before = root[d], after = __builtin_sqrt(before * before + g[i] * g[i]);
            z[d] += g[i] - (after - before) * inverse * w[i];
            root[d] = after;
        });
        w += ranges[r].end - ranges[r].begin;
        g += ranges[r].end - ranges[r].begin;
    }
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
