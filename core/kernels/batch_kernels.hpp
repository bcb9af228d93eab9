// Sum-product and its Hessian–vector product over chains whose arcs are few, for a whole batch of sequences
// at once: the lanes of a vector are sequences, so that no arc asks for a gather. Included only by
// kernels.cpp.
#pragma once

#include <cstdint>

#include "base/interruption.hpp"
#include "base/simd.hpp"
#include "kernels/kernels.hpp"

namespace crfkit::CRFKIT_ISA {

// The numbers of all lanes of a batch at one place.
template <class Real>
struct Lane {
    static constexpr int vectors = kBatch<Real> / Lanes<Real>::count;
    Vector<Real> v[vectors];

    static Lane at(const Real* p) {
        Lane out;
        for (int j = 0; j < vectors; ++j) out.v[j] = load(p + j * Lanes<Real>::count);
        return out;
    }
    static Lane of(Real x) {
        Lane out;
        for (int j = 0; j < vectors; ++j) out.v[j] = broadcast(x);
        return out;
    }
    void put(Real* p) const {
        for (int j = 0; j < vectors; ++j) store<Real>(p + j * Lanes<Real>::count, v[j]);
    }
    template <class Function>
    static Lane each(Function f) {
        Lane out;
        for (int j = 0; j < vectors; ++j) out.v[j] = f(j);
        return out;
    }
    friend Lane operator+(const Lane& a, const Lane& b) {
        return each([&](int j) { return a.v[j] + b.v[j]; });
    }
    friend Lane operator-(const Lane& a, const Lane& b) {
        return each([&](int j) { return a.v[j] - b.v[j]; });
    }
    friend Lane operator*(const Lane& a, const Lane& b) {
        return each([&](int j) { return a.v[j] * b.v[j]; });
    }
    friend Lane most(const Lane& a, const Lane& b) {
        return each([&](int j) { return larger(a.v[j], b.v[j]); });
    }
    // b where a > 0, else 0.
    friend Lane where_positive(const Lane& a, const Lane& b) {
        return each([&](int j) { return a.v[j] > Vector<Real>{} ? b.v[j] : Vector<Real>{}; });
    }
    // Probabilities, 0 for those that are impossible.
    friend Lane possible(const Lane& a) {
        return each([&](int j) { return a.v[j] > broadcast(kImpossible<Real>) ? a.v[j] : Vector<Real>{}; });
    }
    // 1 / x, and 0 for 0.
    friend Lane inverse(const Lane& a) {
        return each([&](int j) { return a.v[j] > Vector<Real>{} ? 1 / a.v[j] : Vector<Real>{}; });
    }
};

// out(b) = Σ_k weight_k · x(other_k) + unlisted · Σ_a x(a), k = ptr[b]..ptr[b+1]−1, for all labels b.
template <class Real>
inline void push_sparse(const std::int64_t* ptr, const std::int32_t* other, const Real* weight, Real unlisted,
                        std::int32_t n_labels, const Real* x, Real* out) {
    constexpr std::int64_t W = kBatch<Real>;
    Lane<Real> background{};
    if (unlisted != 0) {
        for (std::int32_t a = 0; a < n_labels; ++a) background = background + Lane<Real>::at(x + a * W);
        background = background * Lane<Real>::of(unlisted);
    }
    for (std::int32_t b = 0; b < n_labels; ++b) {
        Lane<Real> even = background, odd{};
        std::int64_t k = ptr[b];
        for (; k + 2 <= ptr[b + 1]; k += 2) {
            even = even + Lane<Real>::of(weight[k]) * Lane<Real>::at(x + other[k] * W);
            odd = odd + Lane<Real>::of(weight[k + 1]) * Lane<Real>::at(x + other[k + 1] * W);
        }
        if (k < ptr[b + 1]) even = even + Lane<Real>::of(weight[k]) * Lane<Real>::at(x + other[k] * W);
        (even + odd).put(out + b * W);
    }
}

template <class Real>
inline void push_in(const SparseArcs<Real>& arcs, const Real* x, Real* out) {
    push_sparse(arcs.in_ptr, arcs.in_before, arcs.in_weight, arcs.unlisted, arcs.n_labels, x, out);
}

template <class Real>
inline void push_out(const SparseArcs<Real>& arcs, const Real* x, Real* out) {
    push_sparse(arcs.out_ptr, arcs.out_after, arcs.out_weight, arcs.unlisted, arcs.n_labels, x, out);
}

// 1 where position t is the last of a lane, else 0.
template <class Real>
inline Lane<Real> is_last(const BatchMessages<Real>& m, std::int64_t t) {
    alignas(64) Real flags[kBatch<Real>];
    for (int lane = 0; lane < kBatch<Real>; ++lane)
        flags[lane] = m.lengths[lane] == t + 1 ? Real(1) : Real(0);
    return Lane<Real>::at(flags);
}

// The recursions of Messages (kernels.hpp), lane by lane. Beyond the end of a lane all its messages are 0.
template <class Real>
void batch_sum_product(const SparseArcs<Real>& arcs, std::int64_t n_positions, const BatchMessages<Real>& m) {
    constexpr std::int64_t W = kBatch<Real>;
    using L = Lane<Real>;
    const std::int64_t size = arcs.n_labels * W;
    Pace pace;
    for (std::int64_t t = 0; t < n_positions; ++t) {
        pace.work(arcs.in_ptr[arcs.n_labels] * W);
        Real* row = m.forward + t * size;
        const Real* states = m.states + t * size;
        if (t > 0) push_in(arcs, row - size, row);
        const L scale = t > 0 ? L::at(m.inverse_mass + (t - 1) * W) : L::of(1);
        L mass{};
        for (std::int64_t i = 0; i < size; i += W) {
            const L f = t > 0 ? most(L::at(row + i), L{}) * scale * L::at(states + i) : L::at(states + i);
            f.put(row + i);
            mass = mass + f;
        }
        mass.put(m.mass + t * W);
        inverse(mass).put(m.inverse_mass + t * W);
    }
    L largest{}, cancelled{};
    for (std::int64_t t = n_positions - 1; t >= 0; --t) {
        pace.work(arcs.in_ptr[arcs.n_labels] * W);
        Real* row = m.backward + t * size;
        if (t + 1 < n_positions)
            push_out(arcs, m.pushed + (t + 1) * size, row);
        else
            for (std::int64_t i = 0; i < size; i += W) L{}.put(row + i);
        const L end = is_last(m, t) * L::at(m.inverse_mass + t * W);
        const L scale = t > 0 ? L::at(m.inverse_mass + (t - 1) * W) : L::of(1);
        L following{};
        for (std::int64_t i = 0; i < size; i += W) {
            const L states = L::at(m.states + t * size + i);
            const L b = most(L::at(row + i), L{}) + end + L::of(kFloor<Real>);
            const L pushed = where_positive(states, b * scale * states);
            b.put(row + i);
            pushed.put(m.pushed + t * size + i);
            following = following + pushed;
            largest = most(largest, most(where_positive(states, b), pushed));
            possible(b * L::at(m.forward + t * size + i)).put(m.probs + t * size + i);
        }
        if (t > 0)
            cancelled = most(cancelled, L::of(arcs.unlisted) * L::at(m.mass + (t - 1) * W) * following);
    }
    largest.put(m.largest);
    cancelled.put(m.cancelled);
}

// The recursions of the Hessian–vector product (hessian_kernels.hpp), lane by lane. Leaves the change of
// P(y_t) in m.probs.
template <class Real>
void batch_hessian_vectors(const SparseArcs<Real>& arcs, std::int64_t n_positions,
                           const BatchMessages<Real>& m, const BatchHessianVectors<Real>& d) {
    constexpr std::int64_t W = kBatch<Real>;
    using L = Lane<Real>;
    const std::int64_t size = arcs.n_labels * W;
    Pace pace;
    for (std::int64_t t = 0; t < n_positions; ++t) {
        pace.work(arcs.in_ptr[arcs.n_labels] * W);
        Real* row = d.forward + t * size;
        if (t > 0) {
            push_in(arcs, row - size, row);
            push_sparse(arcs.in_ptr, arcs.in_before, arcs.in_moved, Real(0), arcs.n_labels,
                        m.forward + (t - 1) * size, d.extra);
        }
        const L scale = t > 0 ? L::at(m.inverse_mass + (t - 1) * W) : L{};
        L mass{};
        for (std::int64_t i = 0; i < size; i += W) {
            L f = L::at(m.forward + t * size + i) * L::at(d.direction + t * size + i);
            if (t > 0) f = f + (L::at(row + i) + L::at(d.extra + i)) * scale * L::at(m.states + t * size + i);
            f.put(row + i);
            mass = mass + f;
        }
        const L shift = mass * L::at(m.inverse_mass + t * W);
        shift.put(d.shift + t * W);
        for (std::int64_t i = 0; i < size; i += W)
            (L::at(row + i) - L::at(m.forward + t * size + i) * shift).put(row + i);
    }
    for (std::int64_t t = n_positions - 1; t >= 0; --t) {
        pace.work(arcs.in_ptr[arcs.n_labels] * W);
        Real* row = d.backward + t * size;
        if (t + 1 < n_positions) {
            push_out(arcs, d.pushed + (t + 1) * size, row);
            push_sparse(arcs.out_ptr, arcs.out_after, arcs.out_moved, Real(0), arcs.n_labels,
                        m.pushed + (t + 1) * size, d.extra);
        }
        L mean{};
        for (std::int64_t i = 0; i < size; i += W) {
            const L g = t + 1 < n_positions ? L::at(row + i) + L::at(d.extra + i) : L{};
            g.put(row + i);
            mean = mean + L::at(d.forward + t * size + i) * L::at(m.backward + t * size + i) +
                   L::at(m.forward + t * size + i) * g;
        }
        const L scale = t > 0 ? L::at(m.inverse_mass + (t - 1) * W) : L{};
        const L centre = mean + L::at(d.shift + t * W);
        for (std::int64_t i = 0; i < size; i += W) {
            const std::int64_t at = t * size + i;
            const L f = L::at(m.forward + at), b = L::at(m.backward + at), g = L::at(row + i);
            (L::at(d.forward + at) * b + f * g - mean * f * b).put(m.probs + at);
            (L::at(m.states + at) * g * scale + L::at(m.pushed + at) * (L::at(d.direction + at) - centre))
                .put(d.pushed + at);
        }
    }
}

// sums[k] += Σ_t Σ_lane left_{t−1}(before_k) · right_t(b) for the arcs k into every label b, t = 1..T−1.
template <class Real>
void batch_products(const SparseArcs<Real>& arcs, std::int64_t n_positions, const Real* left,
                    const Real* right, double* sums) {
    constexpr std::int64_t W = kBatch<Real>, tile = 4;
    using L = Lane<Real>;
    const std::int64_t size = arcs.n_labels * W;
    Pace pace;
    for (std::int64_t first = 1; first < n_positions; first += tile) {
        pace.work(arcs.in_ptr[arcs.n_labels] * W * tile);
        const std::int64_t n = first + tile <= n_positions ? tile : n_positions - first;
        for (std::int32_t b = 0; b < arcs.n_labels; ++b) {
            L columns[tile] = {};
            for (std::int64_t i = 0; i < n; ++i) columns[i] = L::at(right + (first + i) * size + b * W);
            for (std::int64_t k = arcs.in_ptr[b]; k < arcs.in_ptr[b + 1]; ++k) {
                const Real* x = left + (first - 1) * size + arcs.in_before[k] * W;
                L total{};
                for (std::int64_t i = 0; i < n; ++i) total = total + L::at(x + i * size) * columns[i];
                for (int j = 0; j < L::vectors; ++j) sums[k] += static_cast<double>(sum<Real>(total.v[j]));
            }
        }
    }
}

}  // namespace crfkit::CRFKIT_ISA
