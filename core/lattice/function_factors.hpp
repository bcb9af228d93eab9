// Feature functions as what scores labels and pairs of neighbouring labels, beside patterns or in a structure
// of the user's own.
#pragma once

#include <cstdint>
#include <vector>

#include "data/bigrams.hpp"
#include "lattice/function_parts.hpp"
#include "training/chain_factors.hpp"

namespace crfkit {

// Outputs of feature functions, and the weights of transitions beside them.
class FunctionFactors final : public ChainFactors {
  public:
    // All must outlive it.
    FunctionFactors(const FunctionSlices& slices, const Bigrams& bigrams, std::int64_t n_weights);

    void load(std::int64_t n) override { functions_.load(n); }
    // Nothing is added for labels that no label sequence with these bigrams has there.
    void add_label(std::int64_t t, std::int32_t b, Parts& parts) override;
    void add_arc(std::int64_t t, std::int32_t k, Parts& parts) override;
    // Of the labels a and b at positions t − 1 and t, whether they are listed or not.
    void add_pair(std::int64_t t, std::int32_t a, std::int32_t b, Parts& parts) const;
    bool by_position() const override { return true; }

  private:
    // The node of a label; −1: none.
    std::int64_t find_node(std::int64_t t, std::int32_t b) const;

    const Bigrams& bigrams_;
    FunctionReader functions_;
    std::vector<std::int32_t> after_;  // [A] the label that each listed arc leads to
};

}  // namespace crfkit
