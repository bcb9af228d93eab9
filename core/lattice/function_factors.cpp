#include "lattice/function_factors.hpp"

namespace crfkit {

FunctionFactors::FunctionFactors(const FunctionSlices& slices, const Bigrams& bigrams, std::int64_t n_weights)
    : bigrams_(bigrams), functions_(slices, n_weights) {
    for (std::int32_t b = 0; b < bigrams.n_labels; ++b)
        after_.insert(after_.end(), bigrams.in_ptr[b + 1] - bigrams.in_ptr[b], b);
}

std::int64_t FunctionFactors::find_node(std::int64_t t, std::int32_t b) const {
    const Lattice& lattice = functions_.lattice;
    const std::int64_t j = lattice.find_node(t, b);
    return j < lattice.position_ptr[t + 1] && lattice.labels[j] == b ? j : -1;
}

void FunctionFactors::add_label(std::int64_t t, std::int32_t b, Parts& parts) {
    if (const std::int64_t j = find_node(t, b); j >= 0) functions_.add_node(j, parts);
}

void FunctionFactors::add_arc(std::int64_t t, std::int32_t k, Parts& parts) {
    add_pair(t, bigrams_.in_before[k], after_[k], parts);
}

void FunctionFactors::add_pair(std::int64_t t, std::int32_t a, std::int32_t b, Parts& parts) const {
    const std::int64_t before = find_node(t - 1, a), j = find_node(t, b);
    if (before < 0 || j < 0) return;
    if (const std::int64_t e = functions_.lattice.find_arc(before, j); e >= 0) functions_.add_arc(e, parts);
}

}  // namespace crfkit
