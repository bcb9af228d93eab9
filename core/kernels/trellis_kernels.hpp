// Sum-product over trellises, for a batch of sequences that share one: the lanes of a vector are sequences.
// Included only by kernels.cpp.
#pragma once

#include <cstdint>

#include "base/simd.hpp"
#include "kernels/batch_kernels.hpp"
#include "kernels/kernels.hpp"

namespace crfkit::CRFKIT_ISA {

// Σ_k weight_k · x(other_k), k = first..last−1.
template <class Real>
inline Lane<Real> weighted_sum(const std::int32_t* other, const Real* weight, std::int32_t first,
                               std::int32_t last, const Real* x) {
    constexpr std::int64_t W = kBatch<Real>;
    using L = Lane<Real>;
    L even{}, odd{};
    std::int32_t k = first;
    for (; k + 2 <= last; k += 2) {
        even = even + L::of(weight[k]) * L::at(x + other[k] * W);
        odd = odd + L::of(weight[k + 1]) * L::at(x + other[k + 1] * W);
    }
    if (k < last) even = even + L::of(weight[k]) * L::at(x + other[k] * W);
    return even + odd;
}

template <class Real>
void trellis_forward(const StepArcs<Real>& step, const Real* states, const Real* inverse_mass, Real* forward,
                     Real* after, Real* mass, Real* next_inverse_mass) {
    constexpr std::int64_t W = kBatch<Real>;
    using L = Lane<Real>;
    const auto arriving = [&](std::int32_t j) {
        return weighted_sum(step.source, step.weight, step.in_ptr[j], step.in_ptr[j + 1], forward);
    };
    for (std::int32_t j = 0; j < step.n_pools; ++j) arriving(j).put(forward + (step.n_before + j) * W);
    const L scale = L::at(inverse_mass);
    L total{};
    for (std::int32_t j = 0; j < step.n_after; ++j) {
        L f = arriving(step.n_pools + j) * scale;
        if (states) f = f * L::at(states + step.following[j] * W);
        f.put(after + j * W);
        total = total + f;
    }
    total.put(mass);
    inverse(total).put(next_inverse_mass);
}

template <class Real>
void trellis_backward(const StepArcs<Real>& step, std::int32_t n_labels, const StepMessages<Real>& m,
                      Real* pushed, Real* probs, Real* largest) {
    constexpr std::int64_t W = kBatch<Real>;
    using L = Lane<Real>;
    const L floor = L::of(kFloor<Real>);
    const auto leaving = [&](std::int32_t i) {
        return weighted_sum(step.reached, step.out_weight, step.out_ptr[i], step.out_ptr[i + 1],
                            m.following) +
               floor;
    };
    for (std::int32_t i = 0; i < step.n_pools; ++i) leaving(step.n_before + i).put(m.following + i * W);
    if (!step.labels) return;
    for (std::int32_t b = 0; b < n_labels; ++b) L{}.put(probs + b * W);
    const L scale = L::at(m.scale);
    L most_following = L::at(largest);
    for (std::int32_t i = 0; i < step.n_before; ++i) {
        const L states = L::at(m.states + step.labels[i] * W);
        const L b = leaving(i);
        const L p = where_positive(states, b * scale * states);
        p.put(pushed + i * W);
        most_following = most(most_following, most(where_positive(states, b), p));
        Real* prob = probs + step.labels[i] * W;
        (L::at(prob) + possible(b * L::at(m.forward + i * W))).put(prob);
    }
    most_following.put(largest);
}

template <class Real>
void trellis_products(const StepArcs<Real>& step, const Real* forward, const Real* following, double* sums) {
    constexpr std::int64_t W = kBatch<Real>;
    using L = Lane<Real>;
    for (std::int32_t j = step.first_scored; j < step.n_pools + step.n_after; ++j) {
        const L column = L::at(following + j * W);
        for (std::int32_t e = step.in_ptr[j]; e < step.in_ptr[j + 1]; ++e) {
            const L product = column * L::at(forward + step.source[e] * W);
            Vector<Real> total = product.v[0];
            for (int k = 1; k < L::vectors; ++k) total = total + product.v[k];
            sums[e] += static_cast<double>(sum<Real>(total));
        }
    }
}

}  // namespace crfkit::CRFKIT_ISA
