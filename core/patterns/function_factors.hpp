// What scores labels and pairs of neighbouring labels beside patterns, where feature functions do.
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
    void add_label(std::int64_t t, std::int32_t b, Parts& parts) override {
        functions_.add_node(functions_.lattice.find_node(t, b), parts);
    }
    void add_arc(std::int64_t t, std::int32_t k, Parts& parts) override;
    bool by_position() const override { return true; }

  private:
    const Bigrams& bigrams_;
    FunctionReader functions_;
    std::vector<std::int32_t> after_;  // [A] the label that each listed arc leads to
};

}  // namespace crfkit
