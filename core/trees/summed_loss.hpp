// Losses of single sentences, summed over a treebank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/buffer.hpp"
#include "base/compensated_sum.hpp"
#include "base/threads.hpp"
#include "training/sequence_loss.hpp"

namespace crfkit {

// Sequence is a SequenceLoss that is made from a Source, and has hessian_vector(weights, direction,
// residuals) beside differentiate(weights, residuals).
template <class Source, class Sequence>
class SummedLoss {
  public:
    // The value at w [D]; out [D] ← the gradient, or with a direction v [D] the Hessian–vector product.
    // Gradients are added in the order of the sentences: the same bits for any number of threads.
    double evaluate(const Source& source, const double* w, const double* v, double* out,
                    int n_threads) const {
        const std::int64_t n = source.n_sequences();
        std::fill_n(out, source.n_slots(), 0.0);
        std::vector<std::unique_ptr<Slot>> slots;
        for (std::int64_t i = 0; i < std::min(n, kAtOnce); ++i)
            slots.push_back(std::make_unique<Slot>(source));
        Total loss;
        for (std::int64_t first = 0; first < n; first += kAtOnce) {
            const std::int64_t size = std::min(kAtOnce, n - first);
            parallel_for(size, n_threads,
                         [&](std::int64_t i, int) { slots[i]->differentiate(first + i, w, v); });
            for (std::int64_t i = 0; i < size; ++i) {
                const auto& ranges = slots[i]->sequence.ranges();
                step_kernels().add(ranges.data(), static_cast<std::int64_t>(ranges.size()),
                                   slots[i]->gradient.data(), 1.0, out);
                loss.add(slots[i]->loss);
            }
        }
        return loss.value();
    }

  private:
    static constexpr std::int64_t kAtOnce = 64;  // sentences differentiated before their gradients are added

    // The workspace of one sentence.
    struct Slot {
        explicit Slot(const Source& source) : sequence(source) {}

        void differentiate(std::int64_t n, const double* w, const double* v) {
            sequence.load(n);
            read(w, weights);
            residuals.resize(sequence.n_residuals());
            gradient.resize(sequence.n_weights());
            if (v) {
                read(v, direction);
                sequence.hessian_vector(weights.data(), direction.data(), residuals.data());
            } else {
                loss = sequence.differentiate(weights.data(), residuals.data());
            }
            sequence.gradient(residuals.data(), gradient.data());
        }
        void read(const double* from, Buffer<double>& to) const {
            to.resize(sequence.n_weights());
            step_kernels().read(sequence.ranges().data(), static_cast<std::int64_t>(sequence.ranges().size()),
                                from, 1.0, to.data());
        }

        Sequence sequence;
        Buffer<double> weights, direction, gradient, residuals;
        double loss = 0;
    };
};

}  // namespace crfkit
