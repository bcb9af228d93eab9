#include "hyperpaths/edge_weights.hpp"

#include "kernels/hyperpath_rows.hpp"

namespace crfkit {

// Scores within ±177 have weights of exponent 0, as Wide::exp would give them: 256 log 2 = 177.4.
void EdgeWeights::set(const double* scores, std::int64_t n) {
    mantissas_.resize(static_cast<std::size_t>(n));
    exponents_.clear();
    if (hyperpath_kernels().weigh(scores, n, 177.0, mantissas_.data())) return;
    exponents_.resize(static_cast<std::size_t>(n));
    for (std::int64_t e = 0; e < n; ++e) {
        const Wide weight = Wide::exp(scores[e]);
        mantissas_[e] = weight.mantissa;
        exponents_[e] = weight.exponent;
    }
}

}  // namespace crfkit
