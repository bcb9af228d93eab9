// Scaled forward–backward over segmentations, in exp space: the lanes of a vector are types of segments.
// Included only by kernels.cpp.
//
// With A_t, I_t, Z_t, S_t the weights of the first, an inside, the last and the only position of a segment at
// t, len(k) that of its length, ρ = `longer`, ∘ lane by lane:
//
//   begin_t     = Wᵀ ended_{t−1},  begin_0 = start                         mass of segments that begin at t
//   going_s(t)  = begin_s ∘ A_s ∘ Π_{s<u≤t} I_u                            that began at s and go on after t
//   long_t      = (going_{t−K}(t−1) ∘ beyond + long'_{t−1}) ∘ ρ,  long'_t = long_t ∘ I_t    beyond K
//   positions several_t   = Z_t ∘ (Σ_{k=2..K} going_{t−k+1}(t−1) ∘ len(k) + long_t) ended_t     = several_t +
//   begin_t ∘ S_t ∘ len(1) Z           = Σ ended_{T−1} ∘ end
//
// Every path has one factor of each position, so the factors of position t may be divided by any number: it
// is the mass of all paths up to t − 1. Backward, with R_e(t) = Z_e ∘ after_e ∘ Π_{t<u<e} I_u:
//
//   after_t     = W before_{t+1},  after_{T−1} = end / Z
//   γ_t         = ρ ∘ (Z_{t+1} ∘ after_{t+1} + I_{t+1} ∘ γ_{t+1})
//   follow_t    = Σ_{k=2..K} R_{t+k−1}(t) ∘ len(k) + Π_{t<u<t+K} I_u ∘ beyond ∘ γ_{t+K−1}
//   before_t    = A_t ∘ follow_t + S_t ∘ len(1) ∘ after_t
//
// so that begin_s ∘ A_s ∘ R_e(s) ∘ len(k) is the probability of the segment (s, e). The product over the
// window of K − 1 positions comes from products within blocks of that many: one from the left, one from the
// right.
#pragma once

#include <cstdint>

#include "base/interruption.hpp"
#include "base/simd.hpp"
#include "kernels/chain_kernels.hpp"
#include "kernels/kernels.hpp"

namespace crfkit::CRFKIT_ISA {

// row · matrix [C, Q], lane group q.
template <class Real>
inline Vector<Real> times(const Real* row, const Real* matrix, std::int32_t C, std::int64_t Q,
                          std::int64_t q) {
    Vector<Real> even{}, odd{};
    std::int32_t c = 0;
    for (; c + 2 <= C; c += 2) {
        even = even + row[c] * load(matrix + c * Q + q);
        odd = odd + row[c + 1] * load(matrix + (c + 1) * Q + q);
    }
    if (c < C) even = even + row[c] * load(matrix + c * Q + q);
    return even + odd;
}

// len(k), times the factor of the segment of k positions that ends with e, where it has features.
template <bool kCells, class Real>
inline Vector<Real> length_factor(const SegmentTable<Real>& table, const SegmentMessages<Real>& m,
                                  std::int64_t e, std::int64_t k, std::int64_t q) {
    const Vector<Real> length = load(table.lengths + (k - 1) * table.stride + q);
    if constexpr (!kCells) return length;
    const std::int32_t cell = m.cells[e * table.n_lengths + k - 1];
    return cell < 0 ? length : length * load(m.factors + cell * static_cast<std::int64_t>(table.stride) + q);
}

template <bool kCells, class Real>
double forward_segments(const SegmentTable<Real>& table, std::int64_t T, const SegmentMessages<Real>& m) {
    const std::int64_t Q = table.stride, K = table.n_lengths;
    constexpr int lanes = Lanes<Real>::count;
    Real scale = 1;
    LogProduct log_scale;
    Pace pace;
    for (std::int64_t t = 0; t < T; ++t) {
        const std::int64_t earliest = t >= K ? t - K + 1 : 0;
        pace.work(Q * (table.n_types + 2 * (t - earliest)));
        Vector<Real> mass{};
        for (std::int64_t q = 0; q < Q; q += lanes) {
            const std::int64_t at = t * Q + q;
            const auto scaled = [&](Real* row) {
                const Vector<Real> x = load(row + at) * scale;
                store(row + at, x);
                return x;
            };
            const Vector<Real> first = scaled(m.first), inside = scaled(m.inside), last = scaled(m.last),
                               single = scaled(m.single);
            const Vector<Real> begin = t == 0
                                           ? load(table.start + q)
                                           : times(m.ended + at - Q - q, table.weights, table.n_types, Q, q);
            Vector<Real> several{}, going{};
            for (std::int64_t s = earliest; s < t; ++s) {
                const Vector<Real> before = load(m.going + s * Q + q);
                several = several + before * length_factor<kCells>(table, m, t, t - s + 1, q);
                const Vector<Real> after = before * inside;
                store(m.going + s * Q + q, after);
                going = going + after;
            }
            Vector<Real> beyond{};
            if (t > 0) beyond = load(m.long_going + at - Q) * load(m.inside + at - Q);
            if (t >= K) beyond = beyond + load(m.going + (t - K) * Q + q) * load(table.beyond + q);
            beyond = beyond * load(table.longer + q);
            store(m.long_going + at, beyond);
            several = (several + beyond) * last;
            const Vector<Real> ended = several + begin * single * length_factor<kCells>(table, m, t, 1, q);
            store(m.begin + at, begin);
            store(m.several + at, several);
            store(m.ended + at, ended);
            store(m.going + at, begin * first);
            mass = mass + going + beyond * inside + begin * first + ended;
        }
        if (t + 1 == T) break;
        const Real total = sum<Real>(mass);
        scale = 1 / total;
        log_scale.multiply(static_cast<double>(total));
    }
    Real z = 0;
    for (std::int32_t c = 0; c < table.n_types; ++c) z += m.ended[(T - 1) * Q + c] * table.end[c];
    *m.partition = z;
    log_scale.multiply(static_cast<double>(z));
    return log_scale.log();
}

// Fills window [T, Q] with Π_{t<u<t+K} I_u, for t + K − 1 < T.
template <class Real>
void multiply_windows(const SegmentTable<Real>& table, std::int64_t T, const SegmentMessages<Real>& m) {
    const std::int64_t Q = table.stride, n = table.n_lengths - 1;  // positions of a window
    constexpr int lanes = Lanes<Real>::count;
    for (std::int64_t q = 0; q < Q; q += lanes) {
        const auto inside = [&](std::int64_t t) { return load(m.inside + t * Q + q); };
        if (n == 0) {
            for (std::int64_t t = 0; t < T; ++t) store(m.window + t * Q + q, broadcast(Real(1)));
            continue;
        }
        Vector<Real> product{};
        for (std::int64_t t = T; t-- > 0;) {  // from t + 1 to the end of its block, for windows (t, t + n]
            product = t + 1 < T ? ((t + 2) % n == 0 || t + 2 >= T ? inside(t + 1) : inside(t + 1) * product)
                                : broadcast(Real(1));
            store(m.window + t * Q + q, product);
        }
        for (std::int64_t e = 0; e < T; ++e) {  // from the begin of its block to e
            product = e % n == 0 ? inside(e) : product * inside(e);
            if (e >= n && (e + 1) % n != 0) {
                Real* const window = m.window + (e - n) * Q + q;
                store(window, load(window) * product);
            }
        }
    }
}

template <bool kCells, class Real>
Real backward_segments(const SegmentTable<Real>& table, std::int64_t T, const SegmentMessages<Real>& m,
                       const SegmentSums<Real>& sums) {
    const std::int64_t Q = table.stride, K = table.n_lengths;
    constexpr int lanes = Lanes<Real>::count;
    multiply_windows(table, T, m);
    Vector<Real> largest{};
    Pace pace;
    const Vector<Real> floor = broadcast(kFloor<Real>);
    for (std::int64_t t = T; t-- > 0;) {
        const std::int64_t latest = t + K < T ? t + K : T;  // ends before it
        pace.work(Q * (table.n_types + 4 * (latest - t)));
        for (std::int64_t q = 0; q < Q; q += lanes) {
            const std::int64_t at = t * Q + q;
            const Vector<Real> first = load(m.first + at), inside = load(m.inside + at),
                               last = load(m.last + at), single = load(m.single + at),
                               begin = load(m.begin + at), opened = begin * first,
                               longer = load(table.longer + q);
            const Vector<Real> after =
                floor + (t + 1 == T ? load(table.end + q) / *m.partition
                                    : times(m.before + at + Q - q, table.transposed, table.n_types, Q, q));
            Vector<Real> follow{}, gamma{};
            for (std::int64_t e = t + 1; e < latest; ++e) {
                const Vector<Real> rest = load(m.rest + e * Q + q);
                const Vector<Real> factor = length_factor<kCells>(table, m, e, e - t + 1, q);
                follow = follow + rest * factor;
                Real* const count = sums.lengths + (e - t) * Q + q;
                const Vector<Real> prob = opened * rest * factor;
                store(count, load(count) + prob);
                if constexpr (kCells)
                    if (const std::int32_t cell = m.cells[e * K + e - t]; cell >= 0)
                        store(sums.cells + cell * Q + q, prob);
                store(m.rest + e * Q + q, rest * inside);
            }
            if (t + 1 < T)
                gamma = longer * (load(m.last + at + Q) * load(m.after + at + Q) +
                                  load(m.inside + at + Q) * load(m.gamma + at + Q)) +
                        (longer > Real(0) ? floor : Vector<Real>{});
            if (t + K - 1 < T) {
                // γ_t itself where K = 1, which is not stored yet.
                const Vector<Real> tail = load(m.window + at) * load(table.beyond + q) *
                                          (K == 1 ? gamma : load(m.gamma + at + (K - 1) * Q));
                follow = follow + tail;
                store(sums.entering + q, load(sums.entering + q) + opened * tail);
            }
            if (t > 0) {
                const Vector<Real> here = last * after + inside * gamma;
                store(sums.beyond + q, load(sums.beyond + q) + load(m.long_going + at) * here);
            }
            const Vector<Real> alone = single * length_factor<kCells>(table, m, t, 1, q) * after;
            store(sums.lengths + q, load(sums.lengths + q) + begin * alone);
            if constexpr (kCells)
                if (const std::int32_t cell = m.cells[t * K]; cell >= 0)
                    store(sums.cells + cell * Q + q, begin * alone);
            const Vector<Real> before = first * follow + alone + floor;
            store(m.after + at, after);
            store(m.gamma + at, gamma);
            store(m.rest + at, last * after);
            store(m.before + at, before);
            store(sums.first + at, opened * follow);
            store(sums.last + at, load(m.several + at) * after);
            store(sums.single + at, begin * alone);
            largest = larger(largest, larger(larger(after, before), larger(follow, gamma)));
        }
    }
    return maximum<Real>(largest);
}

template <class Real>
double segment_forward(const SegmentTable<Real>& table, std::int64_t n_positions,
                       const SegmentMessages<Real>& messages) {
    return messages.cells ? forward_segments<true>(table, n_positions, messages)
                          : forward_segments<false>(table, n_positions, messages);
}

template <class Real>
Real segment_backward(const SegmentTable<Real>& table, std::int64_t n_positions,
                      const SegmentMessages<Real>& messages, const SegmentSums<Real>& sums) {
    return messages.cells ? backward_segments<true>(table, n_positions, messages, sums)
                          : backward_segments<false>(table, n_positions, messages, sums);
}

}  // namespace crfkit::CRFKIT_ISA
