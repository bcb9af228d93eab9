// How the marginals of one chain move when its scores move. Included only by kernels.cpp.
//
// Let u_t(y) = E[change of score up to position t | y_t = y] and q_t(y) = E[change after position t | y_t =
// y]. Kept are F_t = forward_t ∘ u_t and G_t = backward_t ∘ q_t, which obey the recursions of the messages
// with the change added, where d_t is the change of the states and W' = W ∘ (change of the arcs):
//   F_t     = (F_{t−1} W + forward_{t−1} W') ∘ U_t scale_t + forward_t ∘ d_t
//   G_{t−1} = W P_t + W' pushed_t,                              P_t = U_t scale_t ∘ G_t + d_t ∘ pushed_t
// and  d P(y_t) = F_t ∘ backward_t + forward_t ∘ G_t,  up to the multiple of P(y_t) that makes it sum to 0.
//
// u and q matter only up to a constant per position. Both are centred as they go, so that no digits are lost
// in long chains: u_t by shift_t, the mean of u_{t−1}; q at the last position by the mean of u there, and
// q_{t−1} by shift_t, which leaves E[u_t + q_t] = 0 at every position but for rounding. No step waits for a
// sum then.
//
// `pushed` holds pushed'_t = P_t − shift_t pushed_t, so that the change of the arc marginals is
//   W(a,b) (forward_{t−1}(a) · pushed'_t(b) + F_{t−1}(a) · pushed_t(b)) + W'(a,b) forward_{t−1}(a)
//   pushed_t(b).
//
// What is pushed through W' does not depend on other positions: it is done beforehand, for several positions
// at once.
#pragma once

#include <cstdint>

#include "base/interruption.hpp"
#include "base/simd.hpp"
#include "kernels/chain_kernels.hpp"
#include "kernels/kernels.hpp"

namespace crfkit::CRFKIT_ISA {

// out_r(b) = Σ_a x_r(a) · table(a, b) for ROWS rows x_r, out_r [S], one after the other in memory.
template <class Real, int ROWS, int NV>
inline void push_tile(const Real* table, std::int32_t n_labels, std::int32_t stride, const Real* x,
                      Real* out) {
    constexpr int lanes = Lanes<Real>::count;
    Vector<Real> sums[ROWS][NV];
    CRFKIT_UNROLL
    for (int i = 0; i < ROWS * NV; ++i) sums[i / NV][i % NV] = Vector<Real>{};
    for (std::int32_t a = 0; a < n_labels; ++a) {
        Vector<Real> columns[NV];
        CRFKIT_UNROLL
        for (int j = 0; j < NV; ++j)
            columns[j] = load(table + static_cast<std::int64_t>(a) * stride + j * lanes);
        CRFKIT_UNROLL
        for (int r = 0; r < ROWS; ++r) {
            const Vector<Real> factor = broadcast(x[r * stride + a]);
            CRFKIT_UNROLL
            for (int j = 0; j < NV; ++j) sums[r][j] += factor * columns[j];
        }
    }
    CRFKIT_UNROLL
    for (int i = 0; i < ROWS * NV; ++i)
        store<Real>(out + i / NV * stride + i % NV * lanes, sums[i / NV][i % NV]);
}

template <class Real, int ROWS>
inline void push_tiles(const Real* table, std::int32_t n_labels, std::int32_t stride, const Real* x,
                       Real* out) {
    constexpr int lanes = Lanes<Real>::count;
    std::int32_t c = 0;
    for (; c + 3 * lanes <= stride; c += 3 * lanes)
        push_tile<Real, ROWS, 3>(table + c, n_labels, stride, x, out + c);
    if (c + 2 * lanes <= stride) {
        push_tile<Real, ROWS, 2>(table + c, n_labels, stride, x, out + c);
        c += 2 * lanes;
    }
    if (c < stride) push_tile<Real, ROWS, 1>(table + c, n_labels, stride, x, out + c);
}

// The same for any number of rows.
template <class Real>
inline void push_rows(const Real* table, std::int32_t n_labels, std::int32_t stride, const Real* x,
                      std::int64_t n_rows, Real* out) {
    std::int64_t r = 0;
    for (; r + 4 <= n_rows; r += 4)
        push_tiles<Real, 4>(table, n_labels, stride, x + r * stride, out + r * stride);
    if (r + 2 <= n_rows) {
        push_tiles<Real, 2>(table, n_labels, stride, x + r * stride, out + r * stride);
        r += 2;
    }
    if (r < n_rows) push_tiles<Real, 1>(table, n_labels, stride, x + r * stride, out + r * stride);
}

// run(t, n) for every run of n positions from t on that share their arcs, own(t) for every position that has
// its own; t ≥ 1.
template <class Real, class Run, class Own>
inline void each_run(const PositionArcs<Real>* position_arcs, std::int64_t n_positions, Run run, Own own) {
    if (!position_arcs) return run(1, n_positions - 1);
    for (std::int64_t t = 1; t < n_positions;) {
        std::int64_t end = t;
        while (end < n_positions && !position_arcs[end].weight) ++end;
        if (end > t) run(t, end - t);
        if (end < n_positions) own(end);
        t = end + 1;
    }
}

// F_t, shift_t, and pushed_t once more. Uses d.backward for forward_{t−1} W' (row t). Returns the mean of u
// at the last position.
template <class Real, int NV>
Real hessian_vector_forward(const ArcTable<Real>& arcs, const PositionArcs<Real>* position_arcs,
                            std::int64_t n_positions, const Messages<Real>& m,
                            const HessianVectors<Real>& d) {
    const std::int32_t S = arcs.stride, L = arcs.n_labels;
    each_run(
        position_arcs, n_positions,
        [&](std::int64_t t, std::int64_t n) {
            push_rows<Real>(arcs.moved, L, S, m.forward + (t - 1) * S, n, d.backward + t * S);
        },
        [&](std::int64_t t) {
            push<Real, NV>(position_arcs[t].moved, L, S, m.forward + (t - 1) * S, d.backward + t * S);
        });
    const Vector<Real> first = broadcast(m.scale[0]);
    d.shift[0] = 0;
    Vector<Real> mass{};
    each_vector<Real>(S, [&](std::int32_t j) {
        const Vector<Real> v = load(m.forward + j) * load(d.direction + j);
        store<Real>(d.forward + j, v);
        store<Real>(m.pushed + j, pushed_of<Real>(load(m.states + j), load(m.backward + j), first));
        mass += v;
    });
    Pace pace;
    for (std::int64_t t = 1; t < n_positions; ++t) {
        pace.work(static_cast<std::int64_t>(S) * S);
        const std::int64_t here = t * S;
        const Real* table = position_arcs && position_arcs[t].weight ? position_arcs[t].weight : arcs.weight;
        const Vector<Real> factor = broadcast(m.scale[t]);
        d.shift[t] = sum<Real>(mass) * m.scale[t];
        const Vector<Real> shift = broadcast(d.shift[t]);
        mass = Vector<Real>{};
        push_each<Real, NV>(table, L, S, d.forward + here - S, [&](std::int32_t j, Vector<Real> pushed) {
            const Vector<Real> states = load(m.states + here + j);
            const Vector<Real> change = load(d.direction + here + j) - shift;
            const Vector<Real> v = (pushed + load(d.backward + here + j)) * factor * states +
                                   load(m.forward + here + j) * change;
            store<Real>(d.forward + here + j, v);
            store<Real>(m.pushed + here + j, pushed_of<Real>(states, load(m.backward + here + j), factor));
            mass += v;
        });
    }
    return sum<Real>(mass) * m.scale[0];
}

// G_t and what follows from both. `mean` is that of u at the last position: q is −mean there.
template <class Real, int NV>
void hessian_vector_backward(const ArcTable<Real>& arcs, const PositionArcs<Real>* position_arcs,
                             std::int64_t n_positions, const Messages<Real>& m, const HessianVectors<Real>& d,
                             Real mean) {
    const std::int32_t S = arcs.stride, L = arcs.n_labels;
    const std::int64_t last = (n_positions - 1) * S;
    each_vector<Real>(S, [&](std::int32_t j) {
        store<Real>(d.backward + last + j, load(m.backward + last + j) * broadcast(-mean));
    });
    each_run(
        position_arcs, n_positions,
        [&](std::int64_t t, std::int64_t n) {
            push_rows<Real>(arcs.moved_transposed, L, S, m.pushed + t * S, n, d.backward + (t - 1) * S);
        },
        [&](std::int64_t t) {
            pull<Real>(position_arcs[t].moved, L, S, m.pushed + t * S, d.backward + (t - 1) * S);
        });
    const Vector<Real> weight = broadcast(m.weight);
    Real excess = 0;  // half the mean that rounding left at the position after; all of it would swing back
    Pace pace;
    for (std::int64_t t = n_positions - 1; t >= 0; --t) {
        pace.work(static_cast<std::int64_t>(S) * S);
        const std::int64_t here = t * S;
        const Vector<Real> factor = broadcast(m.scale[t]), centre = broadcast(d.shift[t] + excess);
        Vector<Real> mass{};
        each_vector<Real>(S, [&](std::int32_t j) {
            const Vector<Real> G = load(d.backward + here + j);
            const Vector<Real> v =
                load(d.forward + here + j) * load(m.backward + here + j) + load(m.forward + here + j) * G;
            mass += v;
            store<Real>(d.probs + here + j, v * weight);
            store<Real>(d.pushed + here + j,
                        load(m.states + here + j) * factor * G +
                            load(m.pushed + here + j) * (load(d.direction + here + j) - centre));
        });
        if (t == 0) return;
        Real* row = d.backward + here - S;
        if (position_arcs && position_arcs[t].weight) {
            pull<Real>(position_arcs[t].weight, L, S, d.pushed + here, d.extra);
            each_vector<Real>(
                S, [&](std::int32_t j) { store<Real>(row + j, load(row + j) + load(d.extra + j)); });
        } else {
            push_each<Real, NV>(
                arcs.transposed, L, S, d.pushed + here,
                [&](std::int32_t j, Vector<Real> pushed) { store<Real>(row + j, load(row + j) + pushed); });
        }
        excess = sum<Real>(mass) / 2;
    }
}

template <class Real, int NV>
void hessian_vectors_of_width(const ArcTable<Real>& arcs, const PositionArcs<Real>* position_arcs,
                              std::int64_t n_positions, const Messages<Real>& m,
                              const HessianVectors<Real>& d) {
    const Real mean = hessian_vector_forward<Real, NV>(arcs, position_arcs, n_positions, m, d);
    hessian_vector_backward<Real, NV>(arcs, position_arcs, n_positions, m, d, mean);
}

template <class Real>
void hessian_vectors(const ArcTable<Real>& arcs, const PositionArcs<Real>* position_arcs,
                     std::int64_t n_positions, const Messages<Real>& m, const HessianVectors<Real>& d) {
    CRFKIT_BY_WIDTH(hessian_vectors_of_width, arcs, position_arcs, n_positions, m, d)
}

#undef CRFKIT_BY_WIDTH

}  // namespace crfkit::CRFKIT_ISA
