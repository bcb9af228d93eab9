// Scaled forward–backward over a group of dense chains. Included only by kernels.cpp.
//
// The chains of a group go side by side: a row of the table of arcs is loaded once for all of them, and while
// a step of one chain waits for the step before it, those of the others fill the gaps.
#pragma once

#include <cstdint>

#include "base/interruption.hpp"
#include "base/simd.hpp"
#include "kernels/chain_kernels.hpp"
#include "kernels/kernels.hpp"

namespace crfkit::CRFKIT_ISA {

// out_k(b) = Σ_a x_k(a) · table(a, b) for K chains, rows of NV vectors. The order of additions is the same
// for every K, so the numbers of a chain do not depend on its group.
template <class Real, int NV, int K>
inline void push_group(const Real* table, std::int32_t n_labels, const Real* const* x, Real* const* out) {
    constexpr int lanes = Lanes<Real>::count;
    Vector<Real> sums[K][NV] = {};
    for (std::int32_t a = 0; a < n_labels; ++a) {
        Vector<Real> row[NV];
        CRFKIT_UNROLL
        for (int j = 0; j < NV; ++j) row[j] = load(table + (a * NV + j) * lanes);
        CRFKIT_UNROLL
        for (int k = 0; k < K; ++k) {
            const Vector<Real> factor = broadcast(x[k][a]);
            CRFKIT_UNROLL
            for (int j = 0; j < NV; ++j) sums[k][j] += factor * row[j];
        }
    }
    CRFKIT_UNROLL
    for (int i = 0; i < K * NV; ++i) store<Real>(out[i / NV] + i % NV * lanes, sums[i / NV][i % NV]);
}

// The chains of a group, the longest first.
template <class Real, int NV>
struct ChainGroup {
    const ArcTable<Real>& arcs;
    std::int32_t n_chains = 0;
    std::int32_t numbers[kMostChains];  // as they came
    std::int64_t n_positions[kMostChains];
    Messages<Real> messages[kMostChains];
    ForwardPass<Real, NV> forward[kMostChains];

    void insert(std::int32_t number, std::int64_t length, const Messages<Real>& m) {
        std::int32_t k = n_chains++;
        for (; k > 0 && n_positions[k - 1] < length; --k) {
            numbers[k] = numbers[k - 1];
            n_positions[k] = n_positions[k - 1];
            messages[k] = messages[k - 1];
        }
        numbers[k] = number;
        n_positions[k] = length;
        messages[k] = m;
    }

    // Chains first..first + K − 1, from position t − 1 to t.
    template <int K>
    void step_forward(std::int32_t first, std::int64_t t) {
        const Real* before[K];
        Real* here[K];
        for (int k = 0; k < K; ++k) {
            here[k] = messages[first + k].forward + t * arcs.stride;
            before[k] = here[k] - arcs.stride;
        }
        push_group<Real, NV, K>(arcs.weight, arcs.n_labels, before, here);
        for (int k = 0; k < K; ++k) forward[first + k].finish_step(arcs, messages[first + k], t);
    }
    // From position t to t − 1.
    template <int K>
    void step_backward(std::int32_t first, std::int64_t t) {
        const Real* here[K];
        Real* before[K];
        for (int k = 0; k < K; ++k) {
            const Messages<Real>& m = messages[first + k];
            here[k] = m.pushed + t * arcs.stride;
            before[k] = m.backward + (t - 1) * arcs.stride;
        }
        push_group<Real, NV, K>(arcs.transposed, arcs.n_labels, here, before);
        for (int k = 0; k < K; ++k) use_backward<Real>(arcs, messages[first + k], t - 1);
    }

    // step.template operator()<K>(first) for the chains that have position t, all at once where the group is
    // full.
    template <class Step>
    void each_step(std::int64_t t, Step step) {
        constexpr std::int32_t full = chains_side_by_side(NV);
        if (n_chains == full && t < n_positions[full - 1]) return step.template operator()<full>(0);
        for (std::int32_t k = 0; k < n_chains && t < n_positions[k]; ++k) step.template operator()<1>(k);
    }
};

template <class Real, int NV>
void sum_products_of_width(const ArcTable<Real>& arcs, std::int32_t n_chains, const std::int64_t* n_positions,
                           const Messages<Real>* m, double* log_partitions) {
    if constexpr (chains_side_by_side(NV) == 1) {
        for (std::int32_t k = 0; k < n_chains; ++k)
            log_partitions[k] = sum_product_of_width<Real, NV>(arcs, nullptr, n_positions[k], m[k]);
    } else {
        Total totals[kMostChains];
        ChainGroup<Real, NV> group{arcs};
        for (std::int32_t k = 0; k < n_chains; ++k) {
            log_partitions[k] = -INFINITY;
            if (exponentiate_rows<Real, NV>(m[k].states, n_positions[k], arcs, totals[k]))
                group.insert(k, n_positions[k], m[k]);
        }
        if (group.n_chains == 0) return;
        Pace pace;
        const std::int64_t longest = group.n_positions[0], work = n_chains * arcs.stride * arcs.stride;
        for (std::int32_t k = 0; k < group.n_chains; ++k) group.forward[k].begin(arcs, group.messages[k]);
        for (std::int64_t t = 1; t < longest; ++t) {
            pace.work(work);
            group.each_step(t, [&]<int K>(std::int32_t first) { group.template step_forward<K>(first, t); });
        }
        for (std::int32_t k = 0; k < group.n_chains; ++k) {
            const std::int32_t number = group.numbers[k];
            const std::int64_t last = group.n_positions[k] - 1;
            totals[number].add_product(static_cast<double>(last), arcs.maximum);
            if (group.forward[k].end(group.messages[k], totals[number]))
                log_partitions[number] = totals[number].value();
            begin_backward<Real>(arcs, group.messages[k], last);
        }
        for (std::int64_t t = longest - 1; t > 0; --t) {
            pace.work(work);
            group.each_step(t, [&]<int K>(std::int32_t first) { group.template step_backward<K>(first, t); });
        }
    }
}

template <class Real>
void sum_products(const ArcTable<Real>& arcs, std::int32_t n_chains, const std::int64_t* n_positions,
                  const Messages<Real>* messages, double* log_partitions) {
    CRFKIT_BY_WIDTH(sum_products_of_width, arcs, n_chains, n_positions, messages, log_partitions)
}

}  // namespace crfkit::CRFKIT_ISA
