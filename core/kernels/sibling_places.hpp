// Numbers of siblings from the order in which they are given into that of the chart, and back. Those with a
// head to the right of their dependent are transposed, in tiles: the rows of the chart have the place that is
// farther right. Included only by kernels.cpp, like simd.hpp.
#pragma once

#include <cstdint>
#include <utility>

#include "base/simd.hpp"
#include "kernels/sibling_rows.hpp"
#include "kernels/streams.hpp"
#include "kernels/tree_kernels.hpp"

namespace crfkit::CRFKIT_ISA {

static_assert(SiblingChart::kPad % kWidth == 0);

using LaneNumbers = Lanes<double>::Ints;

inline LaneNumbers lane_numbers() {
    LaneNumbers lanes{};
    for (int lane = 0; lane < kWidth; ++lane) lanes[lane] = lane;
    return lanes;
}

// The last whole vector at or before a place.
inline std::int64_t whole(std::int64_t place) { return place / kWidth * kWidth; }

// One step of a transposition: numbers whose row and lane differ in the bit kStep change places.
template <int kStep, std::size_t... kLane>
inline void exchange(Vector<double>& a, Vector<double>& b, std::index_sequence<kLane...>) {
    constexpr int width = kWidth;
    const Vector<double> low =
        __builtin_shufflevector(a, b, (kLane & kStep ? width + int(kLane) - kStep : int(kLane))...);
    b = __builtin_shufflevector(a, b, (kLane & kStep ? width + int(kLane) : int(kLane) + kStep)...);
    a = low;
}

template <int kStep = 1>
inline void transpose(Vector<double>* rows) {
    CRFKIT_UNROLL
    for (int r = 0; r < kWidth; ++r)
        if (!(r & kStep)) exchange<kStep>(rows[r], rows[r + kStep], std::make_index_sequence<kWidth>{});
    if constexpr (2 * kStep < kWidth) transpose<2 * kStep>(rows);
}

// Four vectors at a time: this runs at the speed of the memory.
inline bool all_usable(const double* x, std::int64_t n) {
    const Vector<double> infinite = broadcast(__builtin_inf());
    const auto usable = [&](std::int64_t j) { return load_loose(x + j) < infinite; };  // NaN compares false
    LaneNumbers lanes = lane_numbers() >= 0;
    std::int64_t j = 0;
    for (; j + 4 * kWidth <= n; j += 4 * kWidth)
        lanes &= usable(j) & usable(j + kWidth) & usable(j + 2 * kWidth) & usable(j + 3 * kWidth);
    bool all = true;
    for (int lane = 0; lane < kWidth; ++lane) all = all && lanes[lane] != 0;
    for (; j < n; ++j) all = all && x[j] < __builtin_inf();
    return all;
}

struct ExpOfSums {
    static constexpr bool kAddsArcs = true;
    static Vector<double> of(Vector<double> x) { return exp_nonpositive(x); }
};
struct PlainScores {
    static constexpr bool kAddsArcs = false;
    static Vector<double> of(Vector<double> x) { return x; }
};

// Places numbers, and keeps the highest; lanes outside of begin … end − 1 count as −inf.
template <class Write>
struct SiblingPlacer {
    LaneNumbers lanes = lane_numbers();
    Vector<double> highest = broadcast(-__builtin_inf());

    void put(Vector<double> scores, const double* arcs, std::int64_t at, std::int64_t begin, std::int64_t end,
             double* out) {
        if constexpr (Write::kAddsArcs) scores += load_loose(arcs);
        const auto inside = (lanes >= begin - at) & (lanes < end - at);
        const Vector<double> x = inside ? scores : broadcast(-__builtin_inf());
        highest = larger(highest, x);
        store(out, Write::of(x));
    }
};

// The tile of kWidth heads from `begin` on and one sibling k: all its dependents i < k.
template <class Write>
inline void place_tile(const SiblingChart& chart, const SiblingScores& scores, std::int64_t begin,
                       std::int64_t k, SiblingPlacer<Write>& placer) {
    const std::int64_t n = chart.n, stride = chart.stride(), last = n - 1;
    const double* rows[kWidth];
    CRFKIT_UNROLL
    for (int b = 0; b < kWidth; ++b) {
        const std::int64_t head = begin + b < last ? begin + b : last;  // behind the end: not used
        rows[b] = scores.row(head > k ? head : k + 1, k);
    }
    for (std::int64_t i = 0; i < k; i += kWidth) {
        Vector<double> tile[kWidth];
        CRFKIT_UNROLL
        for (int b = 0; b < kWidth; ++b) tile[b] = load_loose(rows[b] + i);
        transpose(tile);
        CRFKIT_UNROLL
        for (int t = 0; t < kWidth; ++t) {
            const std::int64_t dependent = i + t;
            if (dependent >= k || dependent < scores.least) continue;
            placer.put(tile[t], scores.arcs_left + dependent * stride + begin, begin, k + 1, n,
                       chart.left_row(dependent, k) + begin - SiblingChart::begin(k));
        }
    }
}

template <class Write>
inline double place_siblings(const SiblingChart& chart, const SiblingScores& scores) {
    const std::int64_t n = chart.n;
    SiblingPlacer<Write> placer;
    for (std::int64_t begin = 0; begin < n; begin += kWidth) {
        const std::int64_t end = begin + kWidth < n ? begin + kWidth : n;
        for (std::int64_t k = 0; k + 1 < end; ++k) place_tile(chart, scores, begin, k, placer);
        for (std::int64_t h = begin; h < end; ++h) {
            const double* const arcs = scores.arcs_right + h * scores.side;
            double* const first_right = chart.row(SiblingChart::kFirstRight, h);
            for (std::int64_t j = whole(h + 1); j < n; j += kWidth)
                placer.put(load_loose(scores.row(h, h) + j), arcs + j, j, h + 1, n, first_right + j);
            for (std::int64_t k = h + 1; k + 1 < n; ++k) {
                double* const out = chart.right_row(h, k) - SiblingChart::begin(k);
                for (std::int64_t j = whole(k + 1); j < n; j += kWidth)
                    placer.put(load_loose(scores.row(h, k) + j), arcs + j, j, k + 1, n, out + j);
            }
        }
    }
    return maximum<double>(placer.highest);
}

// A vector of a row of n numbers that ends where the row ends.
inline void store_within(double* row, std::int64_t at, std::int64_t n, Vector<double> numbers) {
    if (at + kWidth <= n) {
        store_loose(row + at, numbers);
    } else {
        for (std::int64_t j = at; j < n; ++j) row[j] = numbers[j - at];
    }
}

// All numbers of one head: `plane` [side, side]. `left` [n, stride] has those of dependents to the left.
inline void write_plane(const SiblingChart& chart, std::int64_t first, std::int64_t h, const double* left,
                        double* plane) {
    using Chart = SiblingChart;
    const std::int64_t n = chart.n, side = n + first;
    const Vector<double> zeros{};
    for (std::int64_t j = 0; first && j < side; j += kWidth) store_within(plane, j, side, zeros);
    for (std::int64_t k = 0; k < n; ++k) {
        double* const out = plane + (k + first) * side + first;
        if (first) out[-1] = 0;  // the root is no dependent
        const double* from = nullptr;
        std::int64_t begin = n, end = n;
        if (k < h) {
            from = left + k * chart.stride();
            begin = 0;
            end = k;
        } else if (k + 1 < n) {
            from = k == h ? chart.row(Chart::kFirstRight, h) : chart.right_row(h, k) - Chart::begin(k);
            begin = whole(k + 1);
        }
        std::int64_t j = 0;
        for (; j < begin; j += kWidth) store_within(out, j, n, zeros);
        for (; j < end; j += kWidth) store_within(out, j, n, load(from + j));
        for (; j < n; j += kWidth) store_within(out, j, n, zeros);
        for (std::int64_t i = 0; k == h && i < h; ++i) out[i] = chart.row(Chart::kFirstLeft, i)[h];
    }
}

// `planes` take the numbers of kWidth heads to the right of their dependents, transposed, and behind them
// those of one head where they are streamed.
inline void write_siblings(const SiblingChart& chart, std::int64_t first, bool streamed, double* planes,
                           double* siblings) {
    const std::int64_t n = chart.n, side = n + first, stride = chart.stride(), size = side * side;
    const Vector<double> zeros{};
    for (std::int64_t begin = 0; begin < n; begin += kWidth) {
        const std::int64_t end = begin + kWidth < n ? begin + kWidth : n;
        for (std::int64_t k = 0; k + 1 < end; ++k)
            for (std::int64_t i = 0; i < k; i += kWidth) {
                Vector<double> tile[kWidth];
                CRFKIT_UNROLL
                for (int t = 0; t < kWidth; ++t)
                    tile[t] =
                        i + t < k ? load(chart.left_row(i + t, k) + begin - SiblingChart::begin(k)) : zeros;
                transpose(tile);
                CRFKIT_UNROLL
                for (int b = 0; b < kWidth; ++b) store(planes + (b * n + k) * stride + i, tile[b]);
            }
        for (std::int64_t h = begin; h < end; ++h) {
            double* const out = siblings + (h + first) * size;
            double* const plane = streamed ? planes + SiblingChart::kPad * n * stride + phase(out) : out;
            write_plane(chart, first, h, planes + (h - begin) * n * stride, plane);
            if (streamed) stream(plane, size, out);
        }
    }
    if (streamed) finish_streams();
}

inline void raise_row(double* x, const double* y, std::int64_t n) {
    std::int64_t j = 0;
    for (; j + kWidth <= n; j += kWidth) store_loose(x + j, larger(load_loose(x + j), load_loose(y + j)));
    for (; j < n; ++j) x[j] = x[j] > y[j] ? x[j] : y[j];
}

// The last vector begins before the end of the one before it, so that it ends with the row.
inline void weigh_sums(const double* x, const double* y, std::int64_t n, double* out) {
    if (n >= kWidth) {
        for (std::int64_t j = 0; j < n; j += kWidth) {
            const std::int64_t at = j + kWidth <= n ? j : n - kWidth;
            store_loose(out + at, exp_nonpositive(load_loose(x + at) + load_loose(y + at)));
        }
    } else if (n > 0) {
        double rest[kWidth] = {};
        for (std::int64_t j = 0; j < n; ++j) rest[j] = x[j] + y[j];
        store_loose(rest, exp_nonpositive(load_loose(rest)));
        for (std::int64_t j = 0; j < n; ++j) out[j] = rest[j];
    }
}

}  // namespace crfkit::CRFKIT_ISA
