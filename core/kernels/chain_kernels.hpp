// Scaled forward–backward (sum-product) and Viterbi (max-sum) over one dense chain. Included only by
// kernels.cpp.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/interruption.hpp"
#include "base/simd.hpp"
#include "kernels/kernels.hpp"

namespace crfkit::CRFKIT_ISA {

// each(b, Σ_a x(a) · table(a, b)) for whole vectors of labels b: a message pushed through the arcs of one
// position. NV vectors wide, held in registers; several independent sums over a hide the latency of the
// additions.
template <class Real, int NV, class Function>
inline void push_columns(const Real* table, std::int32_t n_labels, std::int32_t stride, const Real* x,
                         Function each) {
    constexpr int lanes = Lanes<Real>::count;
    constexpr int sets = NV <= 3 ? 4 : NV <= 4 ? 2 : 1;
    Vector<Real> sums[sets][NV];
    for (int k = 0; k < sets; ++k)
        for (int j = 0; j < NV; ++j) sums[k][j] = Vector<Real>{};
    std::int32_t a = 0;
    for (; a + sets <= n_labels; a += sets)
        for (int k = 0; k < sets; ++k) {
            const Vector<Real> factor = broadcast(x[a + k]);
            const Real* row = table + static_cast<std::int64_t>(a + k) * stride;
            for (int j = 0; j < NV; ++j) sums[k][j] += factor * load(row + j * lanes);
        }
    for (; a < n_labels; ++a) {
        const Vector<Real> factor = broadcast(x[a]);
        const Real* row = table + static_cast<std::int64_t>(a) * stride;
        for (int j = 0; j < NV; ++j) sums[0][j] += factor * load(row + j * lanes);
    }
    for (int k = 1; k < sets; ++k)
        for (int j = 0; j < NV; ++j) sums[0][j] += sums[k][j];
    for (int j = 0; j < NV; ++j) each(j * lanes, sums[0][j]);
}

// The same for whole rows. NV > 0: the width is known when compiling. NV = 0: any width, in tiles of four
// vectors.
template <class Real, int NV, class Function>
inline void push_each(const Real* table, std::int32_t n_labels, std::int32_t stride, const Real* x,
                      Function each) {
    if constexpr (NV > 0) {
        push_columns<Real, NV>(table, n_labels, stride, x, each);
    } else {
        constexpr int lanes = Lanes<Real>::count;
        std::int32_t column = 0;
        const auto shifted = [&](std::int32_t j, Vector<Real> sum) { each(column + j, sum); };
        for (; column + 4 * lanes <= stride; column += 4 * lanes)
            push_columns<Real, 4>(table + column, n_labels, stride, x, shifted);
        for (; column < stride; column += lanes)
            push_columns<Real, 1>(table + column, n_labels, stride, x, shifted);
    }
}

// out(b) = Σ_a x(a) · table(a, b)
template <class Real, int NV>
inline void push(const Real* table, std::int32_t n_labels, std::int32_t stride, const Real* x, Real* out) {
    push_each<Real, NV>(table, n_labels, stride, x,
                        [&](std::int32_t j, Vector<Real> sum) { store<Real>(out + j, sum); });
}

// out(a) = Σ_b table(a, b) · x(b), for tables that have no transposed copy.
template <class Real>
inline void pull(const Real* table, std::int32_t n_labels, std::int32_t stride, const Real* x, Real* out) {
    constexpr int lanes = Lanes<Real>::count;
    for (std::int32_t a = 0; a < n_labels; ++a) {
        Vector<Real> total{};
        for (std::int32_t j = 0; j < stride; j += lanes)
            total += load(table + static_cast<std::int64_t>(a) * stride + j) * load(x + j);
        out[a] = sum<Real>(total);
    }
    for (std::int32_t a = n_labels; a < stride; ++a) out[a] = 0;
}

// f(j) for every whole vector of a row.
template <class Real, class Function>
inline void each_vector(std::int32_t stride, Function f) {
    for (std::int32_t j = 0; j < stride; j += Lanes<Real>::count) f(j);
}

template <class Real>
void exp_shifted(const Real* x, Real maximum, Real* out, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += Lanes<Real>::count)
        store<Real>(out + i, exp_nonpositive(load(x + i) - broadcast(maximum)));
}

// A sum that keeps the digits that plain addition drops (Neumaier): maxima of states and arcs may be large
// and cancel.
struct Total {
    double sum = 0, lost = 0;
    void add(double x) {
        const double next = sum + x;
        lost += std::fabs(sum) >= std::fabs(x) ? (sum - next) + x : (x - next) + sum;
        sum = next;
    }
    void add_product(double x, double y) {
        add(x * y);
        add(__builtin_fma(x, y, -(x * y)));  // what rounding took
    }
    double value() const { return sum + lost; }
};

template <class Real>
Real row_maximum(const Real* row, std::int64_t n) {
    Vector<Real> top = load(row);
    for (std::int64_t i = 0; i < n; i += Lanes<Real>::count) top = larger(top, load(row + i));
    return maximum<Real>(top);
}

template <class Real>
Real exponentiate(Real* row, std::int64_t n) {
    const Real maximum = row_maximum(row, n);
    if (!(maximum > -INFINITY)) return maximum;
    for (std::int64_t i = 0; i < n; i += Lanes<Real>::count) {
        const Vector<Real> x = load(row + i) - broadcast(maximum);
        const Vector<Real> open = exp_nonpositive(larger(x, broadcast(kLowest<Real>)));
        store<Real>(row + i, x > broadcast(Real(-INFINITY)) ? open : Vector<Real>{});
    }
    return maximum;
}

// exp(score − maximum) of one row that fits into NV vectors; NV = 0: any width.
template <class Real, int NV>
Real exponentiate_row(Real* row, std::int32_t stride) {
    if constexpr (NV == 0) {
        const Real maximum = row_maximum(row, stride);
        if (maximum > -INFINITY) exp_shifted<Real>(row, maximum, row, stride);
        return maximum;
    } else {
        constexpr int lanes = Lanes<Real>::count;
        Vector<Real> scores[NV], top = load(row);
        CRFKIT_UNROLL
        for (int j = 0; j < NV; ++j) {
            scores[j] = load(row + j * lanes);
            top = larger(top, scores[j]);
        }
        const Real highest = maximum<Real>(top);
        if (!(highest > -INFINITY)) return highest;
        CRFKIT_UNROLL
        for (int j = 0; j < NV; ++j)
            store<Real>(row + j * lanes, exp_nonpositive(scores[j] - broadcast(highest)));
        return highest;
    }
}

// Replaces each row of scores by exp(score − its maximum), and adds up the maxima. False if a row has none.
template <class Real, int NV>
bool exponentiate_rows(Real* states, std::int64_t n_positions, const ArcTable<Real>& arcs, Total& maxima) {
    for (std::int64_t t = 0; t < n_positions; ++t) {
        Real* row = states + t * arcs.stride;
        const Real maximum =
            arcs.some_missing ? exponentiate(row, arcs.stride) : exponentiate_row<Real, NV>(row, arcs.stride);
        if (!(maximum > -INFINITY)) return false;
        maxima.add(maximum);
    }
    return true;
}

// A running product of positive numbers, kept as a logarithm only when it would leave the range of double.
struct LogProduct {
    double logarithm = 0, product = 1;
    void multiply(double factor) {
        product *= factor;
        if (product < 1e-200 || product > 1e200) {
            logarithm += std::log(product);
            product = 1;
        }
    }
    double log() const { return logarithm + std::log(product); }
};

// The forward pass of one chain, position by position: Σ_t log |forward_t|₁ and the arcs' maxima.
template <class Real, int NV>
struct ForwardPass {
    LogProduct total;
    Vector<Real> mass{};

    void begin(const ArcTable<Real>& arcs, const Messages<Real>& m) {
        each_vector<Real>(arcs.stride, [&](std::int32_t j) {
            const Vector<Real> v = load(m.states + j);
            store<Real>(m.forward + j, v);
            mass += v;
        });
    }
    void step(const ArcTable<Real>& arcs, const Real* weight, const Messages<Real>& m, std::int64_t t) {
        Real* row = m.forward + t * arcs.stride;
        push<Real, NV>(weight, arcs.n_labels, arcs.stride, row - arcs.stride, row);
        finish_step(arcs, m, t);
    }
    // After the message of the position before was pushed to position t.
    void finish_step(const ArcTable<Real>& arcs, const Messages<Real>& m, std::int64_t t) {
        const std::int32_t stride = arcs.stride;
        const Real before = sum<Real>(mass);
        const Real scale = Real(1) / before;
        m.scale[t] = scale;
        total.multiply(before);
        Real* row = m.forward + t * stride;
        mass = Vector<Real>{};
        const Vector<Real> factor = broadcast(scale);
        each_vector<Real>(stride, [&](std::int32_t j) {
            // Scaled first: two small numbers in a row would underflow.
            const Vector<Real> v = load(row + j) * factor * load(m.states + t * stride + j);
            store<Real>(row + j, v);
            mass += v;
        });
    }
    // False when nothing is possible.
    bool end(const Messages<Real>& m, Total& log_partition) {
        const Real last = sum<Real>(mass);
        m.scale[0] = Real(1) / last;
        if (!(last > 0)) return false;
        total.multiply(last);
        log_partition.add(total.log());
        return true;
    }
};

// U_t ∘ backward_t · scale_t; in this order nothing underflows that the other factor would raise.
template <class Real>
inline Vector<Real> pushed_of(Vector<Real> states, Vector<Real> backward, Vector<Real> factor) {
    return states > Vector<Real>{} ? backward * factor * states : Vector<Real>{};
}

// What follows from backward_t: P(y_t), and pushed_t, which is pushed to the position before. `states` is
// read before `probs` is written: they may be the same memory.
template <class Real>
inline void use_backward(const ArcTable<Real>& arcs, const Messages<Real>& m, std::int64_t t) {
    const std::int64_t here = t * arcs.stride;
    const Vector<Real> factor = broadcast(m.scale[t]), weight = broadcast(m.weight);
    each_vector<Real>(arcs.stride, [&](std::int32_t j) {
        const Vector<Real> states = load(m.states + here + j), b = load(m.backward + here + j);
        const Vector<Real> p = load(m.forward + here + j) * b;
        if (arcs.some_missing) {
            store<Real>(m.pushed + here + j, pushed_of<Real>(states, b, factor));
            store<Real>(m.probs + here + j, p > broadcast(kImpossible<Real>) ? p * weight : Vector<Real>{});
        } else {
            store<Real>(m.pushed + here + j, states * b * factor);
            store<Real>(m.probs + here + j, p * weight);
        }
    });
}

// backward of the last position, and what follows from it.
template <class Real>
inline void begin_backward(const ArcTable<Real>& arcs, const Messages<Real>& m, std::int64_t last) {
    each_vector<Real>(arcs.stride, [&](std::int32_t j) {
        store<Real>(m.backward + last * arcs.stride + j, broadcast(m.scale[0]));
    });
    use_backward<Real>(arcs, m, last);
}

// From position t to the one before it. own_weight: the arcs into t where they are its own, else null.
template <class Real, int NV>
inline void step_backward(const ArcTable<Real>& arcs, const Real* own_weight, const Messages<Real>& m,
                          std::int64_t t) {
    const std::int32_t stride = arcs.stride;
    Real *pushed = m.pushed + t * stride, *backward = m.backward + (t - 1) * stride;
    if (own_weight)
        pull<Real>(own_weight, arcs.n_labels, stride, pushed, backward);
    else
        push<Real, NV>(arcs.transposed, arcs.n_labels, stride, pushed, backward);
    if (arcs.some_missing)
        each_vector<Real>(stride, [&](std::int32_t j) {
            store<Real>(backward + j, load(backward + j) + broadcast(kFloor<Real>));
        });
    use_backward<Real>(arcs, m, t - 1);
}

template <class Real, int NV>
double sum_product_of_width(const ArcTable<Real>& arcs, const PositionArcs<Real>* position_arcs,
                            std::int64_t n_positions, const Messages<Real>& m) {
    Total log_partition;
    if (!exponentiate_rows<Real, NV>(m.states, n_positions, arcs, log_partition)) return -INFINITY;
    const auto own = [&](std::int64_t t) { return position_arcs ? position_arcs[t].weight : nullptr; };
    ForwardPass<Real, NV> forward;
    forward.begin(arcs, m);
    Pace pace;
    for (std::int64_t t = 1; t < n_positions; ++t) {
        pace.work(static_cast<std::int64_t>(arcs.stride) * arcs.stride);
        log_partition.add(own(t) ? position_arcs[t].maximum : arcs.maximum);
        forward.step(arcs, own(t) ? own(t) : arcs.weight, m, t);
    }
    if (!forward.end(m, log_partition)) return -INFINITY;
    begin_backward<Real>(arcs, m, n_positions - 1);
    for (std::int64_t t = n_positions - 1; t > 0; --t) {
        pace.work(static_cast<std::int64_t>(arcs.stride) * arcs.stride);
        step_backward<Real, NV>(arcs, own(t), m, t);
    }
    return log_partition.value();
}

// Picks the instance whose width is known when compiling; wider rows take the tiled one. `arcs` has the
// stride.
#define CRFKIT_BY_WIDTH(function, ...)             \
    switch (arcs.stride / Lanes<Real>::count) {    \
        case 1:                                    \
            return function<Real, 1>(__VA_ARGS__); \
        case 2:                                    \
            return function<Real, 2>(__VA_ARGS__); \
        case 3:                                    \
            return function<Real, 3>(__VA_ARGS__); \
        case 4:                                    \
            return function<Real, 4>(__VA_ARGS__); \
        case 6:                                    \
            return function<Real, 6>(__VA_ARGS__); \
        default:                                   \
            return function<Real, 0>(__VA_ARGS__); \
    }

template <class Real>
double sum_product(const ArcTable<Real>& arcs, const PositionArcs<Real>* position_arcs,
                   std::int64_t n_positions, const Messages<Real>& m) {
    CRFKIT_BY_WIDTH(sum_product_of_width, arcs, position_arcs, n_positions, m)
}

template <class Real, int NV>
inline void best_columns(const Real* table, std::int32_t n_labels, std::int32_t stride, const Real* before,
                         const Real* states, Real* out) {
    constexpr int lanes = Lanes<Real>::count;
    Vector<Real> top[NV];
    for (int j = 0; j < NV; ++j) top[j] = broadcast(Real(-INFINITY));
    for (std::int32_t a = 0; a < n_labels; ++a) {
        const Vector<Real> score = broadcast(before[a]);
        for (int j = 0; j < NV; ++j)
            top[j] = larger(top[j], score + load(table + static_cast<std::int64_t>(a) * stride + j * lanes));
    }
    for (int j = 0; j < NV; ++j) store<Real>(out + j * lanes, top[j] + load(states + j * lanes));
}

template <class Real>
double max_sum(const Real* arcs, const Real* const* position_arcs, std::int64_t n_positions,
               std::int32_t n_labels, std::int32_t stride, const Real* states, Real* best) {
    constexpr int lanes = Lanes<Real>::count;
    double total = 0;
    Pace pace;
    for (std::int64_t t = 0; t < n_positions; ++t) {
        pace.work(static_cast<std::int64_t>(stride) * stride);
        Real* row = best + t * stride;
        const Real* score = states + t * stride;
        if (t == 0) {
            each_vector<Real>(stride, [&](std::int32_t j) { store<Real>(row + j, load(score + j)); });
        } else {
            const Real* table = position_arcs && position_arcs[t] ? position_arcs[t] : arcs;
            std::int32_t c = 0;
            for (; c + 4 * lanes <= stride; c += 4 * lanes)
                best_columns<Real, 4>(table + c, n_labels, stride, row - stride, score + c, row + c);
            for (; c + 2 * lanes <= stride; c += 2 * lanes)
                best_columns<Real, 2>(table + c, n_labels, stride, row - stride, score + c, row + c);
            for (; c < stride; c += lanes)
                best_columns<Real, 1>(table + c, n_labels, stride, row - stride, score + c, row + c);
        }
        Vector<Real> top = load(row);
        each_vector<Real>(stride, [&](std::int32_t j) { top = larger(top, load(row + j)); });
        const Real highest = maximum<Real>(top);
        if (!(highest > -INFINITY)) return -INFINITY;
        total += highest;
        each_vector<Real>(stride,
                          [&](std::int32_t j) { store<Real>(row + j, load(row + j) - broadcast(highest)); });
    }
    return total;
}

}  // namespace crfkit::CRFKIT_ISA
