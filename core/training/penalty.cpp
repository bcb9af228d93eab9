#include "training/penalty.hpp"

#include <stdexcept>
#include <utility>

#include "kernels/vector_passes.hpp"

namespace crfkit {
SquaredPenalty::SquaredPenalty(std::vector<double> l2, std::int64_t n_weights)
    : l2_(std::move(l2)), n_weights_(n_weights) {
    if (l2_.size() != 1 && static_cast<std::int64_t>(l2_.size()) != n_weights)
        throw std::invalid_argument("l2 must be one number, or one for each weight");
}

double SquaredPenalty::add_gradient(const double* w, double* gradient, int n_threads) const {
    const Strengths l2{l2_.data(), l2_.size() != 1};
    return 0.5 *
           over_blocks({n_weights_, 1, n_threads}, vector_kernels().squared_penalty, w, l2, gradient)[0];
}

void SquaredPenalty::add_product(const double* v, double* out, int n_threads) const {
    const Strengths l2{l2_.data(), l2_.size() != 1};
    over_blocks({n_weights_, 1, n_threads}, vector_kernels().squared_penalty, v, l2, out);
}

}  // namespace crfkit
