// Value and gradient, or Hessian–vector product, of a data set, sequence by sequence: for losses that have no
// faster way over whole data sets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/interruption.hpp"
#include "base/threads.hpp"
#include "training/sequence_loss.hpp"

namespace crfkit {

// Fills out [D] with the gradient at w, or with a direction v with ∇² loss(w) v; returns the value.
//
// open() gives a SequenceLoss for one thread that also has differentiate(weights, direction, residuals): with
// a direction, residuals are how they change along it. Slots are weights. Some sequences go at a time, whose
// gradients are added up in their order: the same bits for any number of threads.
template <class Open>
double sum_sequences(std::int64_t n_sequences, std::int64_t n_weights, int n_threads, const double* w,
                     const double* v, double* out, const Open& open) {
    constexpr std::int64_t at_once = 64;  // sequences whose gradients are in memory together
    struct Share {
        std::vector<SlotRange> ranges;
        std::vector<double> gradient;
        double loss;
    };
    struct Work {
        decltype(open()) sequence;
        std::vector<double> weights, direction, residuals;
    };
    std::vector<Share> shares(static_cast<std::size_t>(std::min(at_once, n_sequences)));
    std::vector<Work> work(static_cast<std::size_t>(std::max(n_threads, 1)));
    std::fill_n(out, n_weights, 0.0);
    double value = 0;
    for (std::int64_t first = 0; first < n_sequences; first += at_once) {
        const std::int64_t n = std::min(at_once, n_sequences - first);
        parallel_for(n, n_threads, [&](std::int64_t i, int worker) {
            check_interruption();
            auto& [sequence, weights, direction, residuals] = work[worker];
            if (!sequence) sequence = open();
            sequence->load(first + i);
            Share& share = shares[i];
            share.ranges = sequence->ranges();
            weights.clear();
            direction.clear();
            for (const SlotRange range : share.ranges) {
                weights.insert(weights.end(), w + range.begin, w + range.end);
                if (v) direction.insert(direction.end(), v + range.begin, v + range.end);
            }
            residuals.resize(static_cast<std::size_t>(sequence->n_residuals()));
            share.loss =
                sequence->differentiate(weights.data(), v ? direction.data() : nullptr, residuals.data());
            share.gradient.resize(weights.size());
            sequence->gradient(residuals.data(), share.gradient.data());
        });
        for (std::int64_t i = 0; i < n; ++i) {
            value += shares[i].loss;
            const double* part = shares[i].gradient.data();
            for (const SlotRange range : shares[i].ranges)
                for (std::int64_t d = range.begin; d < range.end; ++d) out[d] += *part++;
        }
    }
    return value;
}

}  // namespace crfkit
