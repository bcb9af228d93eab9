#include "chain/transition_sums.hpp"

namespace crfkit {

template <class Real>
void TransitionSums<Real>::clear(std::int32_t n_labels, std::int32_t stride) {
    n_labels_ = n_labels;
    stride_ = stride;
    products_.assign(static_cast<std::int64_t>(stride) * stride, 0);
    n_terms_ = 0;
    flushed_.used = direct_.used = false;
}

template <class Real>
void TransitionSums<Real>::add_products(const Kernels<Real>& kernels, const Messages<Real>& m,
                                        const HessianVectors<Real>* changes, std::int64_t first,
                                        std::int64_t n, Real* sums) const {
    if (changes) return kernels.add_changes(m, *changes, first, n, n_labels_, stride_, sums);
    kernels.add_products(m.forward + (first - 1) * stride_, m.pushed + first * stride_, n, n_labels_, stride_,
                         sums);
}

template <class Real>
void TransitionSums<Real>::add(const Kernels<Real>& kernels, const Messages<Real>& m,
                               const HessianVectors<Real>* changes, std::int64_t first, std::int64_t n,
                               const Real* weights) {
    if (m.weight == Real(1)) {
        add_products(kernels, m, changes, first, n, products_.data());
    } else {
        of_sequence_.assign(static_cast<std::int64_t>(stride_) * stride_, 0);
        add_products(kernels, m, changes, first, n, of_sequence_.data());
        for (std::int64_t k = 0; k < size(); ++k) products_[k] += m.weight * of_sequence_[k];
    }
    n_terms_ += n;
    if (n_terms_ < kMostTerms) return;
    double* flushed = flushed_.of(size());
    for (std::int64_t k = 0; k < size(); ++k) flushed[k] += static_cast<double>(weights[k]) * products_[k];
    products_.assign(products_.size(), 0);
    n_terms_ = 0;
}

template <class Real>
void TransitionSums<Real>::add_direct(const double* marginals, double weight) {
    double* direct = direct_.of(size());
    for (std::int64_t k = 0; k < size(); ++k) direct[k] += weight * marginals[k];
}

template class TransitionSums<float>;
template class TransitionSums<double>;

}  // namespace crfkit
