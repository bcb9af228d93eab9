// What the sequences of a block add to the expectations of transitions, or to their changes:
//   Σ_t P(y_{t−1} = a, y_t = b) = Σ_t forward_{t−1}(a) W(a, b) pushed_t(b).
// W is the same at positions that have no features of transitions, and is multiplied in once, behind a sum of
// outer products.
#pragma once

#include <cstdint>

#include "base/buffer.hpp"
#include "kernels/kernels.hpp"

namespace crfkit {

template <class Real>
class TransitionSums {
  public:
    // How many outer products of messages are added in the kernel's precision before they are added to
    // doubles: bounds the rounding of long sequences.
    static constexpr std::int64_t kMostTerms = 128;

    void clear(std::int32_t n_labels, std::int32_t stride);
    // Adds positions first..first + n − 1, at most kMostTerms, of a sequence with these messages and its
    // weight; their change where changes are given. W [L, S]: `weights`.
    void add(const Kernels<Real>& kernels, const Messages<Real>& messages,
             const HessianVectors<Real>* changes, std::int64_t first, std::int64_t n, const Real* weights);
    // Adds weight · marginals [L, S] of one position that has arcs of its own, or was computed in log space.
    void add_direct(const double* marginals, double weight);

    // What was added for pair k of [L, S] by `add`, and by `add_direct`.
    double shared(std::int64_t k, const Real* weights) const {
        const double sum = static_cast<double>(weights[k]) * products_[k];
        return flushed_.used ? sum + flushed_.sums[k] : sum;
    }
    bool has_direct() const { return direct_.used; }
    double direct(std::int64_t k) const { return direct_.sums[k]; }

  private:
    struct Table {
        Buffer<double> sums;
        bool used = false;
        // Zeros before the first use.
        double* of(std::int64_t size) {
            if (!used) sums.assign(size, 0.0);
            used = true;
            return sums.data();
        }
    };
    std::int64_t size() const { return static_cast<std::int64_t>(n_labels_) * stride_; }
    void add_products(const Kernels<Real>& kernels, const Messages<Real>& messages,
                      const HessianVectors<Real>* changes, std::int64_t first, std::int64_t n,
                      Real* sums) const;

    std::int32_t n_labels_ = 0, stride_ = 0;
    // [S, S] Σ forward_{t−1} ⊗ pushed_t (and for changes, Σ forward_{t−1} ⊗ pushed'_t + F_{t−1} ⊗ pushed_t):
    // still to be multiplied by W
    Buffer<Real> products_;
    Buffer<Real> of_sequence_;  // the same of a sequence whose weight is not 1
    std::int64_t n_terms_ = 0;  // positions summed up in products_
    Table flushed_;             // [L, S] what products_ gave before
    Table direct_;              // [L, S]
};

extern template class TransitionSums<float>;
extern template class TransitionSums<double>;

}  // namespace crfkit
