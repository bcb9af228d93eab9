// Passes over the charts of projective trees, a vector of spans of one width at a time. Included only by
// kernels.cpp, like simd.hpp.
#pragma once

#include <cstdint>

#include "base/interruption.hpp"
#include "base/simd.hpp"
#include "kernels/eisner_rows.hpp"
#include "kernels/tree_kernels.hpp"

namespace crfkit::CRFKIT_ISA {

static_assert(kWidth <= EisnerChart::kPad);

struct SumsOfProducts {
    static constexpr double kZero = 0, kOne = 1;
    static Vector<double> times(Vector<double> a, Vector<double> b) { return a * b; }
    static Vector<double> add(Vector<double> sum, Vector<double> a, Vector<double> b) { return sum + a * b; }
};
struct MaximaOfSums {
    static constexpr double kZero = -__builtin_inf(), kOne = 0;
    static Vector<double> times(Vector<double> a, Vector<double> b) { return a + b; }
    static Vector<double> add(Vector<double> most, Vector<double> a, Vector<double> b) {
        return larger(most, a + b);
    }
};

// Row after row, from narrow spans to wide ones:
//   S(i, w)  = C←(i + 1, w − 1) + Σ_{0<k<w} C→(i, k) C←(i + k + 1, w − 1 − k)
//   I→(i, w) = S(i, w) exp(score(i → i + w)),   I←(i, w) = S(i, w) exp(score(i + w → i))
//   C→(i, w) = I→(i, w) + Σ_{0<k<w} I→(i, k) C→(i + k, w − k)
//   C←(i, w) = I←(i, w) + Σ_{0<k<w} C←(i, k) I←(i + k, w − k)
template <class Ops>
inline void eisner_inside(const EisnerChart& chart) {
    using Chart = EisnerChart;
    const std::int64_t n = chart.n;
    const double *const weight_right = chart.array(Chart::kWeightRight), *const weight_left =
                                                                             chart.array(Chart::kWeightLeft);
    double *const arc_right = chart.array(Chart::kArcRight), *const arc_left = chart.array(Chart::kArcLeft),
                  *const right = chart.array(Chart::kRight), *const left = chart.array(Chart::kLeft);
    for (std::int64_t i = 0; i < n; ++i) {
        right[Chart::row(n, 0) + i] = Ops::kOne;
        left[Chart::row(n, 0) + i] = Ops::kOne;
    }
    Pace pace;
    for (std::int64_t w = 1; w < n; ++w) {
        pace.work((n - w) * w);
        const std::int64_t row = Chart::row(n, w);
        for (std::int64_t i = 0; i < n - w; i += kWidth) {
            // a: (i, k); b: (i + k, w − k); the next b: (i + k + 1, w − 1 − k)
            std::int64_t a = Chart::row(n, 1) + i, b = Chart::row(n, w - 1) + i + 1;
            Vector<double> span = load_loose(left + b);
            Vector<double> to_right = broadcast(Ops::kZero), to_left = to_right;
            for (std::int64_t k = 1; k < w; ++k) {
                const std::int64_t next = b - (n - (w - 1 - k) + Chart::kPad) + 1;
                span = Ops::add(span, load_loose(right + a), load_loose(left + next));
                to_right = Ops::add(to_right, load_loose(arc_right + a), load_loose(right + b));
                to_left = Ops::add(to_left, load_loose(left + a), load_loose(arc_left + b));
                a += n - k + Chart::kPad;
                b = next;
            }
            const Vector<double> by_right = Ops::times(span, load_loose(weight_right + row + i)),
                                 by_left = Ops::times(span, load_loose(weight_left + row + i));
            store_loose(arc_right + row + i, by_right);
            store_loose(arc_left + row + i, by_left);
            store_loose(right + row + i, Ops::add(to_right, by_right, broadcast(Ops::kOne)));
            store_loose(left + row + i, Ops::add(to_left, by_left, broadcast(Ops::kOne)));
        }
    }
}

// Row after row, from wide spans to narrow ones; o is an outside sum. With d more places than the span, to
// the left of it or to its right:
//   oC→(i, w) = Σ_d oC→(i − d, w + d) I→(i − d, d)     + Σ_d oS(i, w + d) C←(i + w + 1, d − 1)
//   oC←(i, w) = Σ_d oS(i − d, w + d) C→(i − d, d − 1)  + Σ_d oC←(i, w + d) I←(i + w, d)
//   oI→(i, w) = oC→(i, w) + Σ_d oC→(i, w + d) C→(i + w, d)
//   oI←(i, w) = oC←(i, w) + Σ_d oC←(i − d, w + d) C←(i − d, d)
//   oS(i, w)  = oI→(i, w) exp(score(i → i + w)) + oI←(i, w) exp(score(i + w → i))
inline void eisner_outside(const EisnerChart& chart) {
    using Chart = EisnerChart;
    const std::int64_t n = chart.n;
    const double *const weight_right = chart.array(Chart::kWeightRight),
                        *const weight_left = chart.array(Chart::kWeightLeft),
                        *const arc_right = chart.array(Chart::kArcRight),
                        *const arc_left = chart.array(Chart::kArcLeft),
                        *const right = chart.array(Chart::kRight), *const left = chart.array(Chart::kLeft);
    double *const out_arc_right = chart.array(Chart::kOutArcRight),
                  *const out_arc_left = chart.array(Chart::kOutArcLeft),
                  *const out_right = chart.array(Chart::kOutRight),
                  *const out_left = chart.array(Chart::kOutLeft),
                  *const out_span = chart.array(Chart::kOutSpan);
    Pace pace;
    for (std::int64_t w = n - 1; w > 0; --w) {
        pace.work(2 * (n - w) * (n - w));
        const std::int64_t row = Chart::row(n, w);
        for (std::int64_t i = 0; i < n - w; ++i) out_right[row + i] = out_left[row + i] = 0;
        out_left[row] = chart.goal_left[w];
        out_right[row + n - 1 - w] = chart.goal_right[w];
        for (std::int64_t i = 0; i < n - w; i += kWidth) {
            Vector<double> of_right = load_loose(out_right + row + i),
                           of_left = load_loose(out_left + row + i), of_arc_right{}, of_arc_left{};
            // To the left: no vector begins more than its width before a row.
            const std::int64_t to_left = n - 1 - w < i + kWidth - 1 ? n - 1 - w : i + kWidth - 1;
            std::int64_t wide = row + i, narrow = Chart::row(n, 0) + i;
            for (std::int64_t d = 1; d <= to_left; ++d) {
                const std::int64_t next = narrow + n - d + Chart::kPad;  // (i − d, d), less its shift by 1
                wide += n - (w + d - 1) + Chart::kPad - 1;
                of_right += load_loose(out_right + wide) * load_loose(arc_right + next);
                of_left += load_loose(out_span + wide) * load_loose(right + narrow - 1);
                of_arc_left += load_loose(out_left + wide) * load_loose(left + next);
                narrow = next;
            }
            // To the right: the first span of the vector is within its row.
            std::int64_t beside = Chart::row(n, 0) + i + w;
            wide = row + i;
            for (std::int64_t d = 1; d <= n - 1 - w - i; ++d) {
                const std::int64_t next = beside + n - (d - 1) + Chart::kPad;
                wide += n - (w + d - 1) + Chart::kPad;
                of_right += load_loose(out_span + wide) * load_loose(left + beside + 1);
                of_left += load_loose(out_left + wide) * load_loose(arc_left + next);
                of_arc_right += load_loose(out_right + wide) * load_loose(right + next);
                beside = next;
            }
            of_arc_right += of_right;
            of_arc_left += of_left;
            store_loose(out_right + row + i, of_right);
            store_loose(out_left + row + i, of_left);
            store_loose(out_arc_right + row + i, of_arc_right);
            store_loose(out_arc_left + row + i, of_arc_left);
            store_loose(out_span + row + i, of_arc_right * load_loose(weight_right + row + i) +
                                                of_arc_left * load_loose(weight_left + row + i));
        }
    }
}

}  // namespace crfkit::CRFKIT_ISA
