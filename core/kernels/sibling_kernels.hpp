// Passes over the charts of projective trees with adjacent siblings, a vector of spans with the same begin at
// a time. Included only by kernels.cpp, like simd.hpp.
#pragma once

#include <cstdint>

#include "base/interruption.hpp"
#include "base/simd.hpp"
#include "kernels/eisner_kernels.hpp"
#include "kernels/sibling_rows.hpp"
#include "kernels/tree_kernels.hpp"

namespace crfkit::CRFKIT_ISA {

static_assert(kWidth <= SiblingChart::kPad);

// What span (i, k), which is complete, adds to the spans (i, j), j > k:
//   S(i, j)  += C→(i, k) C←(k + 1, j)
//   C→(i, j) += I→(i, k) C→(k, j)               C←(i, j) += C←(i, k) I←(k, j)
//   A→(i, j) += w(i, k, j) I→(i, k) S(k, j)     A←(i, j) += w(j, k, i) S(i, k) I←(k, j)
template <class Ops>
inline void extend_span(const SiblingChart& chart, std::int64_t i, std::int64_t k) {
    using Chart = SiblingChart;
    const std::int64_t first = k + 1, n = chart.n - first;
    double *const span = chart.row(Chart::kSpan, i) + first,
                  *const right = chart.row(Chart::kRight, i) + first,
                  *const left = chart.row(Chart::kLeft, i) + first,
                  *const from_left = chart.row(Chart::kArcRight, i) + first,
                  *const from_right = chart.row(Chart::kArcLeft, i) + first;
    const double *const next_left = chart.row(Chart::kLeft, k + 1) + first,
                        *const of_right = chart.row(Chart::kRight, k) + first,
                        *const of_arc = chart.row(Chart::kArcLeft, k) + first,
                        *const of_span = chart.row(Chart::kSpan, k) + first,
                        *const w_right = chart.right + chart.row_ptr[i * chart.n + k],
                        *const w_left = chart.left + chart.row_ptr[i * chart.n + k];
    const Vector<double> own_right = broadcast(right[-1]), own_left = broadcast(left[-1]),
                         own_span = broadcast(span[-1]), own_arc = broadcast(from_left[-1]);
    for (std::int64_t j = 0; j < n; j += kWidth) {
        const Vector<double> arcs = load_loose(of_arc + j);
        store_loose(span + j, Ops::add(load_loose(span + j), own_right, load_loose(next_left + j)));
        store_loose(right + j, Ops::add(load_loose(right + j), own_arc, load_loose(of_right + j)));
        store_loose(left + j, Ops::add(load_loose(left + j), own_left, arcs));
        store_loose(from_left + j,
                    Ops::add(load_loose(from_left + j), Ops::times(load_loose(w_right + j), own_arc),
                             load_loose(of_span + j)));
        store_loose(from_right + j,
                    Ops::add(load_loose(from_right + j), Ops::times(load_loose(w_left + j), own_span), arcs));
    }
}

inline double times(SumsOfProducts, double a, double b) { return a * b; }
inline double plus(SumsOfProducts, double a, double b) { return a + b; }
inline double times(MaximaOfSums, double a, double b) { return a + b; }
inline double plus(MaximaOfSums, double a, double b) { return a > b ? a : b; }

// Rows from right to left, each from narrow spans to wide ones: what begins later is complete.
template <class Ops>
inline void sibling_inside(const SiblingChart& chart) {
    using Chart = SiblingChart;
    constexpr Ops ops{};
    const std::int64_t n = chart.n;
    Pace pace;
    for (std::int64_t i = n - 1; i >= 0; --i) {
        pace.work((n - i) * (n - i));
        double *const span = chart.row(Chart::kSpan, i), *const right = chart.row(Chart::kRight, i),
                      *const left = chart.row(Chart::kLeft, i),
                      *const arc_right = chart.row(Chart::kArcRight, i),
                      *const arc_left = chart.row(Chart::kArcLeft, i);
        const double *const first_right = chart.row(Chart::kFirstRight, i),
                            *const first_left = chart.row(Chart::kFirstLeft, i),
                            *const weight_right = chart.row(Chart::kWeightRight, i),
                            *const weight_left = chart.row(Chart::kWeightLeft, i);
        for (std::int64_t j = i; j < n; ++j) right[j] = left[j] = arc_left[j] = Ops::kZero;
        right[i] = left[i] = Ops::kOne;
        // S(i, j) = C←(i + 1, j) + …,  A→(i, j) = w(i, i, j) C←(i + 1, j) + …
        for (std::int64_t j = i + 1; j < n; j += kWidth) {
            const Vector<double> below = load_loose(chart.row(Chart::kLeft, i + 1) + j);
            store_loose(span + j, below);
            store_loose(arc_right + j, Ops::times(load_loose(first_right + j), below));
        }
        for (std::int64_t k = i + 1; k < n; ++k) {
            // A←(i, k) = w(k, k, i) C→(i, k − 1) + …
            arc_left[k] = plus(ops, arc_left[k], times(ops, first_left[k], right[k - 1]));
            if constexpr (Ops::kOne == 0) {
                arc_right[k] = times(ops, arc_right[k], weight_right[k]);
                arc_left[k] = times(ops, arc_left[k], weight_left[k]);
            }
            right[k] = plus(ops, right[k], arc_right[k]);
            left[k] = plus(ops, left[k], arc_left[k]);
            if (k + 1 < n) extend_span<Ops>(chart, i, k);
        }
    }
}

// The derivative of extend_span: outside sums of the spans (i, j), j > k, go to what they were made of.
inline void extend_outside(const SiblingChart& chart, std::int64_t i, std::int64_t k) {
    using Chart = SiblingChart;
    const std::int64_t first = k + 1, n = chart.n - first;
    const double *const out_span = chart.row(Chart::kOutSpan, i) + first,
                        *const out_right = chart.row(Chart::kOutRight, i) + first,
                        *const out_left = chart.row(Chart::kOutLeft, i) + first,
                        *const out_from_left = chart.row(Chart::kOutArcRight, i) + first,
                        *const out_from_right = chart.row(Chart::kOutArcLeft, i) + first,
                        *const next_left = chart.row(Chart::kLeft, k + 1) + first,
                        *const of_right = chart.row(Chart::kRight, k) + first,
                        *const of_arc = chart.row(Chart::kArcLeft, k) + first,
                        *const of_span = chart.row(Chart::kSpan, k) + first;
    double *const out_next_left = chart.row(Chart::kOutLeft, k + 1) + first,
                  *const out_of_right = chart.row(Chart::kOutRight, k) + first,
                  *const out_of_arc = chart.row(Chart::kOutArcLeft, k) + first,
                  *const out_of_span = chart.row(Chart::kOutSpan, k) + first,
                  *const w_right = chart.right + chart.row_ptr[i * chart.n + k],
                  *const w_left = chart.left + chart.row_ptr[i * chart.n + k];
    const double right = chart.row(Chart::kRight, i)[k], left = chart.row(Chart::kLeft, i)[k],
                 span = chart.row(Chart::kSpan, i)[k], arc = chart.row(Chart::kArcRight, i)[k];
    Vector<double> to_right{}, to_left{}, to_span{}, to_arc{};
    for (std::int64_t j = 0; j < n; j += kWidth) {
        const Vector<double> o_span = load_loose(out_span + j), o_right = load_loose(out_right + j),
                             o_left = load_loose(out_left + j), arcs = load_loose(of_arc + j),
                             spans = load_loose(of_span + j),
                             from_left = load_loose(out_from_left + j) * load_loose(w_right + j),
                             from_right = load_loose(out_from_right + j) * load_loose(w_left + j);
        to_right += o_span * load_loose(next_left + j);
        to_arc += o_right * load_loose(of_right + j) + from_left * spans;
        to_left += o_left * arcs;
        to_span += from_right * arcs;
        store_loose(out_next_left + j, load_loose(out_next_left + j) + o_span * right);
        store_loose(out_of_right + j, load_loose(out_of_right + j) + o_right * arc);
        store_loose(out_of_span + j, load_loose(out_of_span + j) + from_left * arc);
        store_loose(out_of_arc + j, load_loose(out_of_arc + j) + o_left * left + from_right * span);
        store_loose(w_right + j, from_left * spans * (arc * chart.scale));
        store_loose(w_left + j, from_right * arcs * (span * chart.scale));
    }
    chart.row(Chart::kOutRight, i)[k] += sum<double>(to_right);
    chart.row(Chart::kOutLeft, i)[k] += sum<double>(to_left);
    chart.row(Chart::kOutSpan, i)[k] += sum<double>(to_span);
    chart.row(Chart::kOutArcRight, i)[k] += sum<double>(to_arc);
}

// Rows from left to right, each from wide spans to narrow ones: the inside pass in the opposite order.
inline void sibling_outside(const SiblingChart& chart) {
    using Chart = SiblingChart;
    const std::int64_t n = chart.n;
    Pace pace;
    for (std::int64_t i = 0; i + 1 < n; ++i) {
        pace.work(3 * (n - i) * (n - i));
        double *const out_right = chart.row(Chart::kOutRight, i),
                      *const out_left = chart.row(Chart::kOutLeft, i),
                      *const out_arc_right = chart.row(Chart::kOutArcRight, i),
                      *const out_arc_left = chart.row(Chart::kOutArcLeft, i),
                      *const first_right = chart.row(Chart::kFirstRight, i),
                      *const first_left = chart.row(Chart::kFirstLeft, i),
                      *const out_below = chart.row(Chart::kOutLeft, i + 1);
        const double *const right = chart.row(Chart::kRight, i),
                            *const below = chart.row(Chart::kLeft, i + 1),
                            *const out_span = chart.row(Chart::kOutSpan, i);
        for (std::int64_t k = n - 1; k > i; --k) {
            if (k + 1 < n) extend_outside(chart, i, k);
            out_arc_right[k] += out_right[k];
            out_arc_left[k] += out_left[k];
            const double from_first = out_arc_left[k] * first_left[k];
            out_right[k - 1] += from_first;
            first_left[k] = from_first * right[k - 1] * chart.scale;
        }
        for (std::int64_t j = i + 1; j < n; j += kWidth) {
            const Vector<double> from_first = load_loose(out_arc_right + j) * load_loose(first_right + j);
            store_loose(out_below + j, load_loose(out_below + j) + load_loose(out_span + j) + from_first);
            store_loose(first_right + j, from_first * load_loose(below + j) * chart.scale);
        }
    }
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
