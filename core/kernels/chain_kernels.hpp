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

// Replaces each row of scores by exp(score − its maximum), and adds up the maxima. False if a row has none.
template <class Real>
bool exponentiate_rows(Real* states, std::int64_t n_positions, const ArcTable<Real>& arcs, Total& maxima) {
    for (std::int64_t t = 0; t < n_positions; ++t) {
        Real* row = states + t * arcs.stride;
        const Real maximum =
            arcs.some_missing ? exponentiate(row, arcs.stride) : row_maximum(row, arcs.stride);
        if (!(maximum > -INFINITY)) return false;
        if (!arcs.some_missing) exp_shifted<Real>(row, maximum, row, arcs.stride);
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

// Adds the arcs' maxima and Σ_t log |forward_t|₁ to `log_partition`. False when nothing is possible.
template <class Real, int NV>
bool forward_pass(const ArcTable<Real>& arcs, const PositionArcs<Real>* position_arcs,
                  std::int64_t n_positions, const Messages<Real>& m, Total& log_partition) {
    const std::int32_t stride = arcs.stride;
    LogProduct total;
    Vector<Real> mass{};
    each_vector<Real>(stride, [&](std::int32_t j) {
        const Vector<Real> v = load(m.states + j);
        store<Real>(m.forward + j, v);
        mass += v;
    });
    Pace pace;
    for (std::int64_t t = 1; t < n_positions; ++t) {
        pace.work(static_cast<std::int64_t>(stride) * stride);
        const bool own = position_arcs && position_arcs[t].weight;
        const Real before = sum<Real>(mass);
        const Real scale = Real(1) / before;
        m.scale[t] = scale;
        total.multiply(before);
        log_partition.add(own ? position_arcs[t].maximum : arcs.maximum);
        Real* row = m.forward + t * stride;
        push<Real, NV>(own ? position_arcs[t].weight : arcs.weight, arcs.n_labels, stride, row - stride, row);
        mass = Vector<Real>{};
        const Vector<Real> factor = broadcast(scale);
        each_vector<Real>(stride, [&](std::int32_t j) {
            // Scaled first: two small numbers in a row would underflow.
            const Vector<Real> v = load(row + j) * factor * load(m.states + t * stride + j);
            store<Real>(row + j, v);
            mass += v;
        });
    }
    const Real last = sum<Real>(mass);
    m.scale[0] = Real(1) / last;
    if (!(last > 0)) return false;
    total.multiply(last);
    log_partition.add(total.log());
    return true;
}

// U_t ∘ backward_t · scale_t; in this order nothing underflows that the other factor would raise.
template <class Real>
inline Vector<Real> pushed_of(Vector<Real> states, Vector<Real> backward, Vector<Real> factor) {
    return states > Vector<Real>{} ? backward * factor * states : Vector<Real>{};
}

template <class Real, int NV>
void backward_pass(const ArcTable<Real>& arcs, const PositionArcs<Real>* position_arcs,
                   std::int64_t n_positions, const Messages<Real>& m) {
    const std::int32_t stride = arcs.stride;
    const std::int64_t last = n_positions - 1;
    const Vector<Real> weight = broadcast(m.weight);
    each_vector<Real>(stride, [&](std::int32_t j) {
        const Vector<Real> v = broadcast(m.scale[0]);
        store<Real>(m.backward + last * stride + j, v);
        store<Real>(m.probs + last * stride + j, v * load(m.forward + last * stride + j) * weight);
    });
    Pace pace;
    for (std::int64_t t = last; t > 0; --t) {
        pace.work(static_cast<std::int64_t>(stride) * stride);
        const std::int64_t here = t * stride, there = here - stride;
        const Vector<Real> factor = broadcast(m.scale[t]);
        each_vector<Real>(stride, [&](std::int32_t j) {
            const Vector<Real> states = load(m.states + here + j), b = load(m.backward + here + j);
            store<Real>(m.pushed + here + j,
                        arcs.some_missing ? pushed_of<Real>(states, b, factor) : states * b * factor);
        });
        if (position_arcs && position_arcs[t].weight)
            pull<Real>(position_arcs[t].weight, arcs.n_labels, stride, m.pushed + here, m.backward + there);
        else
            push<Real, NV>(arcs.transposed, arcs.n_labels, stride, m.pushed + here, m.backward + there);
        each_vector<Real>(stride, [&](std::int32_t j) {
            Vector<Real> b = load(m.backward + there + j);
            if (arcs.some_missing) store<Real>(m.backward + there + j, b += broadcast(kFloor<Real>));
            Vector<Real> p = load(m.forward + there + j) * b;
            if (arcs.some_missing) p = p > broadcast(kImpossible<Real>) ? p : Vector<Real>{};
            store<Real>(m.probs + there + j, p * weight);
        });
    }
}

template <class Real, int NV>
double sum_product_of_width(const ArcTable<Real>& arcs, const PositionArcs<Real>* position_arcs,
                            std::int64_t n_positions, const Messages<Real>& m) {
    Total log_partition;
    if (!exponentiate_rows(m.states, n_positions, arcs, log_partition)) return -INFINITY;
    if (!forward_pass<Real, NV>(arcs, position_arcs, n_positions, m, log_partition)) return -INFINITY;
    backward_pass<Real, NV>(arcs, position_arcs, n_positions, m);
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

// Σ_k left_k ⊗ right_k over TERMS pairs of rows at each position. ROWS × NV accumulators stay in registers
// while t runs over the positions.
template <class Real, int TERMS, int ROWS, int NV>
inline void add_products_tile(const Real* const* left, const Real* const* right, std::int64_t row,
                              std::int64_t column, std::int64_t n, std::int32_t stride, Real* out) {
    constexpr int lanes = Lanes<Real>::count;
    out += row * stride + column;
    Vector<Real> sums[ROWS][NV];
    CRFKIT_UNROLL
    for (int i = 0; i < ROWS * NV; ++i) sums[i / NV][i % NV] = load(out + i / NV * stride + i % NV * lanes);
    for (std::int64_t t = 0; t < n; ++t) {
        CRFKIT_UNROLL
        for (int k = 0; k < TERMS; ++k) {
            const Real* rows = left[k] + t * stride + row;
            Vector<Real> columns[NV];
            CRFKIT_UNROLL
            for (int j = 0; j < NV; ++j) columns[j] = load(right[k] + t * stride + column + j * lanes);
            CRFKIT_UNROLL
            for (int i = 0; i < ROWS; ++i) {
                const Vector<Real> factor = broadcast(rows[i]);
                CRFKIT_UNROLL
                for (int j = 0; j < NV; ++j) sums[i][j] += factor * columns[j];
            }
        }
    }
    CRFKIT_UNROLL
    for (int i = 0; i < ROWS * NV; ++i)
        store<Real>(out + i / NV * stride + i % NV * lanes, sums[i / NV][i % NV]);
}

template <class Real, int TERMS>
void add_all_products(const Real* const* left, const Real* const* right, std::int64_t n,
                      std::int32_t n_labels, std::int32_t stride, Real* out) {
    constexpr int lanes = Lanes<Real>::count;
    for (std::int32_t column = 0; column < stride;) {
        const std::int32_t n_vectors = (stride - column) / lanes;
        const int width = n_vectors >= 4 ? 4 : n_vectors >= 3 ? 3 : n_vectors >= 2 ? 2 : 1;
        for (std::int32_t row = 0; row < n_labels; row += width <= 2 ? 8 : 4) {
            switch (width) {
                case 4:
                    add_products_tile<Real, TERMS, 4, 4>(left, right, row, column, n, stride, out);
                    break;
                case 3:
                    add_products_tile<Real, TERMS, 4, 3>(left, right, row, column, n, stride, out);
                    break;
                case 2:
                    add_products_tile<Real, TERMS, 8, 2>(left, right, row, column, n, stride, out);
                    break;
                default:
                    add_products_tile<Real, TERMS, 8, 1>(left, right, row, column, n, stride, out);
                    break;
            }
        }
        column += width * lanes;
    }
}

template <class Real>
void add_products(const Real* left, const Real* right, std::int64_t n, std::int32_t n_labels,
                  std::int32_t stride, Real* out) {
    add_all_products<Real, 1>(&left, &right, n, n_labels, stride, out);
}

template <class Real>
void add_changes(const Messages<Real>& m, const HessianVectors<Real>& d, std::int64_t t, std::int64_t n,
                 std::int32_t n_labels, std::int32_t stride, Real* out) {
    const std::int64_t here = t * stride, before = here - stride;
    const Real* left[] = {m.forward + before, d.forward + before};
    const Real* right[] = {d.pushed + here, m.pushed + here};
    add_all_products<Real, 2>(left, right, n, n_labels, stride, out);
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
