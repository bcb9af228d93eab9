// Passes over the charts of projective trees with adjacent siblings, a vector of spans with the same begin at
// a time. Included only by kernels.cpp, like simd.hpp.
#pragma once

#include <cstdint>

#include "base/interruption.hpp"
#include "base/simd.hpp"
#include "kernels/eisner_kernels.hpp"
#include "kernels/sibling_places.hpp"
#include "kernels/sibling_rows.hpp"

namespace crfkit::CRFKIT_ISA {

// Spans (i, j) for a vector of j, while the spans (i, k) that they are made of are added:
//   S(i, j)  += C→(i, k) C←(k + 1, j)
//   C→(i, j) += I→(i, k) C→(k, j)               C←(i, j) += C←(i, k) I←(k, j)
//   A→(i, j) += w(i, k, j) I→(i, k) S(k, j)     A←(i, j) += w(j, k, i) S(i, k) I←(k, j)
// Rows k hold no numbers before k, but C→(k, k): that makes C→(i, k) of I→(i, k).
template <class Ops>
struct SpanVector {
    using V = Vector<double>;
    V span, right, left, arc_right, arc_left;

    void extend(const SiblingChart& chart, std::int64_t i, std::int64_t k, std::int64_t j, V own_span,
                V own_right, V own_left, V own_arc) {
        using Chart = SiblingChart;
        const V arcs = load(chart.row(Chart::kArcLeft, k) + j);
        right = Ops::add(right, own_arc, load(chart.row(Chart::kRight, k) + j));
        left = Ops::add(left, own_left, arcs);
        if (k + 1 == chart.n || k + 1 == j + kWidth) return;  // nothing behind k
        const std::int64_t at = j - Chart::begin(k);
        span = Ops::add(span, own_right, load(chart.row(Chart::kLeft, k + 1) + j));
        arc_right = Ops::add(arc_right, Ops::times(load(chart.right_row(i, k) + at), own_arc),
                             load(chart.row(Chart::kSpan, k) + j));
        arc_left = Ops::add(arc_left, Ops::times(load(chart.left_row(i, k) + at), own_span), arcs);
    }
};

template <int kLane, std::size_t... kLanes>
inline Vector<double> spread(Vector<double> v, std::index_sequence<kLanes...>) {
    return __builtin_shufflevector(v, v, (int(kLanes) * 0 + kLane)...);
}

// Completes the spans (i, k) of a vector from `begin` on, one after the other, and adds each to those behind
// it.
template <class Ops, int kLane = 0>
inline void complete_spans(const SiblingChart& chart, std::int64_t i, std::int64_t begin,
                           Vector<double> before, SpanVector<Ops>& spans) {
    using Chart = SiblingChart;
    if constexpr (kLane < kWidth) {
        const std::int64_t k = begin + kLane;
        const auto all = std::make_index_sequence<kWidth>{};
        if (k >= chart.n) return;
        if (k > i) {
            const auto lane = lane_numbers() == kLane;
            // A←(i, k) = w(k, k, i) C→(i, k − 1) + …
            Vector<double> complete =
                Ops::add(spans.arc_left, load(chart.row(Chart::kFirstLeft, i) + begin), before);
            Vector<double> arc = spans.arc_right;
            if constexpr (Ops::kOne == 0) {
                complete += load(chart.row(Chart::kWeightLeft, i) + begin);
                arc += load(chart.row(Chart::kWeightRight, i) + begin);
                spans.arc_right = lane ? arc : spans.arc_right;
            }
            spans.arc_left = lane ? complete : spans.arc_left;
            spans.left = lane ? Ops::add(spans.left, complete, broadcast(Ops::kOne)) : spans.left;
            const Vector<double> own_arc = spread<kLane>(arc, all),
                                 own_right =
                                     Ops::add(spread<kLane>(spans.right, all), own_arc, broadcast(Ops::kOne));
            spans.extend(chart, i, k, begin, spread<kLane>(spans.span, all), own_right,
                         spread<kLane>(spans.left, all), own_arc);
            before = own_right;
        } else if (k == i) {
            before = broadcast(Ops::kOne);
        }
        complete_spans<Ops, kLane + 1>(chart, i, begin, before, spans);
    }
}

// Rows from right to left, each from narrow spans to wide ones: what begins later is complete.
template <class Ops>
inline void sibling_inside(const SiblingChart& chart) {
    using Chart = SiblingChart;
    const std::int64_t n = chart.n;
    Pace pace;
    for (std::int64_t i = n - 1; i >= 0; --i) {
        pace.work((n - i) * (n - i));
        double *const span = chart.row(Chart::kSpan, i), *const right = chart.row(Chart::kRight, i),
                      *const left = chart.row(Chart::kLeft, i),
                      *const arc_right = chart.row(Chart::kArcRight, i),
                      *const arc_left = chart.row(Chart::kArcLeft, i);
        const Vector<double> zeros = broadcast(Ops::kZero);
        for (std::int64_t j = whole(i); j < n; j += kWidth) {
            // S(i, j) = C←(i + 1, j) + …,  A→(i, j) = w(i, i, j) C←(i + 1, j) + …
            const Vector<double> below = i + 1 < n ? load(chart.row(Chart::kLeft, i + 1) + j) : zeros,
                                 first = Ops::times(load(chart.row(Chart::kFirstRight, i) + j), below),
                                 own = lane_numbers() == i - j ? broadcast(Ops::kOne) : zeros;
            SpanVector<Ops> spans{below, own, own, first, zeros};
            for (std::int64_t k = i + 1; k < j; ++k)
                spans.extend(chart, i, k, j, broadcast(span[k]), broadcast(right[k]), broadcast(left[k]),
                             broadcast(arc_right[k]));
            complete_spans(chart, i, j, broadcast(j > i ? right[j - 1] : Ops::kZero), spans);
            store(span + j, spans.span);
            store(right + j, spans.right);
            store(left + j, spans.left);
            store(arc_right + j, spans.arc_right);
            store(arc_left + j, spans.arc_left);
        }
    }
}

// Outside sums of the spans (i, j) for a vector of j.
struct OutsideVector {
    using V = Vector<double>;
    V span, right, left, arc_right, arc_left;
};

// The sums of four vectors.
struct FourSums {
    double a, b, c, d;
};
template <std::size_t... kLane>
inline FourSums add_up(Vector<double> a, Vector<double> b, Vector<double> c, Vector<double> d,
                       std::index_sequence<kLane...>) {
    constexpr int width = sizeof...(kLane);
    const auto halves = [](Vector<double> x, Vector<double> y) {  // x₀ + x₁, y₀ + y₁, x₂ + x₃, …
        return __builtin_shufflevector(x, y, (kLane & 1 ? width + int(kLane) - 1 : int(kLane))...) +
               __builtin_shufflevector(x, y, (kLane & 1 ? width + int(kLane) : int(kLane) + 1)...);
    };
    const Vector<double> ab = halves(a, b), cd = halves(c, d);
    if constexpr (width == 2) {
        return {ab[0], ab[1], cd[0], cd[1]};
    } else {
        const Vector<double> all =
            __builtin_shufflevector(ab, cd, (kLane & 2 ? width + int(kLane) - 2 : int(kLane))...) +
            __builtin_shufflevector(ab, cd, (kLane & 2 ? width + int(kLane) : int(kLane) + 2)...);
        constexpr int half = width == 4 ? 0 : width / 2;  // a vector of four has the sums already
        const auto sums = __builtin_shufflevector(all, all, half, half + 1, half + 2, half + 3);
        if constexpr (width == 4) return {sums[0], sums[1], sums[2], sums[3]};
        constexpr int c = width > 2 ? 2 : 0, d = width > 2 ? 3 : 0;
        return {all[0] + sums[0], all[1] + sums[1], all[c] + sums[2], all[d] + sums[3]};
    }
}

// The derivative of SpanVector::extend: outside sums of the spans (i, j), j > k, go to what they were made
// of.
struct OutsideSplit {
    using V = Vector<double>;
    using Chart = SiblingChart;

    OutsideSplit(const SiblingChart& chart, std::int64_t i, std::int64_t k)
        : next_left(chart.row(Chart::kLeft, k + 1)),
          of_right(chart.row(Chart::kRight, k)),
          of_arc(chart.row(Chart::kArcLeft, k)),
          of_span(chart.row(Chart::kSpan, k)),
          out_next_left(chart.row(Chart::kOutLeft, k + 1)),
          out_of_right(chart.row(Chart::kOutRight, k)),
          out_of_arc(chart.row(Chart::kOutArcLeft, k)),
          out_of_span(chart.row(Chart::kOutSpan, k)),
          w_right(chart.right_row(i, k) - Chart::begin(k)),
          w_left(chart.left_row(i, k) - Chart::begin(k)),
          right(broadcast(chart.row(Chart::kRight, i)[k])),
          left(broadcast(chart.row(Chart::kLeft, i)[k])),
          span(broadcast(chart.row(Chart::kSpan, i)[k])),
          arc(broadcast(chart.row(Chart::kArcRight, i)[k])),
          scaled_arc(arc * chart.scale),
          scaled_span(span * chart.scale) {}

    void give(std::int64_t j, const OutsideVector& out) {
        const V arcs = load(of_arc + j), spans = load(of_span + j),
                from_left = out.arc_right * load(w_right + j), from_right = out.arc_left * load(w_left + j),
                of_siblings = from_left * spans, of_left = from_right * arcs;
        to_right += out.span * load(next_left + j);
        to_arc += out.right * load(of_right + j) + of_siblings;
        to_left += out.left * arcs;
        to_span += of_left;
        store(out_next_left + j, load(out_next_left + j) + out.span * right);
        store(out_of_right + j, load(out_of_right + j) + out.right * arc);
        store(out_of_span + j, load(out_of_span + j) + from_left * arc);
        store(out_of_arc + j, load(out_of_arc + j) + out.left * left + from_right * span);
        store(w_right + j, of_siblings * scaled_arc);
        store(w_left + j, of_left * scaled_span);
    }

    const double *next_left, *of_right, *of_arc, *of_span;
    double *out_next_left, *out_of_right, *out_of_arc, *out_of_span, *w_right, *w_left;
    V right, left, span, arc, scaled_arc, scaled_span;
    V to_right{}, to_left{}, to_span{}, to_arc{};
};

// Row i, from wide spans to narrow ones. The sums of the vector that k lies in are kept in `own`: its lanes
// behind k are complete.
inline void outside_row(const SiblingChart& chart, std::int64_t i) {
    using Chart = SiblingChart;
    const std::int64_t n = chart.n;
    double *const out_span = chart.row(Chart::kOutSpan, i), *const out_right = chart.row(Chart::kOutRight, i),
                  *const out_left = chart.row(Chart::kOutLeft, i),
                  *const out_arc_right = chart.row(Chart::kOutArcRight, i),
                  *const out_arc_left = chart.row(Chart::kOutArcLeft, i),
                  *const first_left = chart.row(Chart::kFirstLeft, i);
    const double* const right = chart.row(Chart::kRight, i);
    const LaneNumbers lanes = lane_numbers();
    double from_first = 0;  // to C→(i, k) from A←(i, k + 1)
    for (std::int64_t begin = whole(n - 1); begin + kWidth > i + 1; begin -= kWidth) {
        OutsideVector own{};
        for (std::int64_t k = begin + kWidth < n ? begin + kWidth - 1 : n - 1; k >= begin && k > i; --k) {
            FourSums to{};
            if (k + 1 < n) {
                OutsideSplit split(chart, i, k);
                for (std::int64_t j = begin + kWidth; j < n; j += kWidth)
                    split.give(j, {load(out_span + j), load(out_right + j), load(out_left + j),
                                   load(out_arc_right + j), load(out_arc_left + j)});
                // Last, as it waits for the place before: all else does not.
                if (k + 1 < begin + kWidth) split.give(begin, own);
                to = add_up(split.to_right, split.to_left, split.to_span, split.to_arc,
                            std::make_index_sequence<kWidth>{});
            }
            out_span[k] += to.c;
            out_right[k] += to.a + from_first;
            out_left[k] += to.b;
            out_arc_right[k] += to.d + out_right[k];
            out_arc_left[k] += out_left[k];
            const auto lane = lanes == k - begin;
            own.span = lane ? broadcast(out_span[k]) : own.span;
            own.right = lane ? broadcast(out_right[k]) : own.right;
            own.left = lane ? broadcast(out_left[k]) : own.left;
            own.arc_right = lane ? broadcast(out_arc_right[k]) : own.arc_right;
            own.arc_left = lane ? broadcast(out_arc_left[k]) : own.arc_left;
            from_first = out_arc_left[k] * first_left[k];
            first_left[k] = from_first * right[k - 1] * chart.scale;
        }
    }
    out_right[i] += from_first;
}

// Rows from left to right: the inside pass in the opposite order.
inline void sibling_outside(const SiblingChart& chart) {
    using Chart = SiblingChart;
    const std::int64_t n = chart.n;
    Pace pace;
    for (std::int64_t i = 0; i + 1 < n; ++i) {
        pace.work(3 * (n - i) * (n - i));
        outside_row(chart, i);
        double *const first_right = chart.row(Chart::kFirstRight, i), *const out_below =
                                                                          chart.row(Chart::kOutLeft, i + 1);
        const double *const out_arc_right = chart.row(Chart::kOutArcRight, i),
                            *const below = chart.row(Chart::kLeft, i + 1),
                            *const out_span = chart.row(Chart::kOutSpan, i);
        // Lanes up to i hold no spans: their weights are 0, and what they give is not read.
        for (std::int64_t j = whole(i + 1); j < n; j += kWidth) {
            const Vector<double> first = load(out_arc_right + j) * load(first_right + j);
            store(out_below + j, load(out_below + j) + load(out_span + j) + first);
            store(first_right + j, first * load(below + j) * chart.scale);
        }
    }
}

}  // namespace crfkit::CRFKIT_ISA
