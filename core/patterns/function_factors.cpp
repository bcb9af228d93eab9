#include "patterns/function_factors.hpp"

namespace crfkit {

FunctionFactors::FunctionFactors(const FunctionSlices& slices, const Bigrams& bigrams, std::int64_t n_weights)
    : bigrams_(bigrams), functions_(slices, n_weights) {
    for (std::int32_t b = 0; b < bigrams.n_labels; ++b)
        after_.insert(after_.end(), bigrams.in_ptr[b + 1] - bigrams.in_ptr[b], b);
}

void FunctionFactors::add_arc(std::int64_t t, std::int32_t k, Parts& parts) {
    const Lattice& lattice = functions_.lattice;
    const std::int64_t before = lattice.find_node(t - 1, bigrams_.in_before[k]);
    functions_.add_arc(lattice.find_arc(before, lattice.find_node(t, after_[k])), parts);
}

}  // namespace crfkit
