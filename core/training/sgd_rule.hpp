// Stochastic gradient descent with proximal penalties, lazily applied.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "training/step_rule.hpp"

namespace crfkit {

// Step k with rate η_k along b sequences, c = η b / N:
//   w ← soft(w − η Σ ∇loss_n(w), c l1) / (1 + c l2),         soft(x, a) = sign(x) max(|x| − a, 0)
// the proximal form of the penalty (Duchi & Singer 2009, FOBOS), which is stable for every strength.
//
// State: weights [D]; with "total" [D], the sum of the weights after each step is added to it (for Polyak–
// Ruppert averaging).
class SGDRule final : public GradientRule {
  public:
    // rates [steps of a pass]: one for each step.
    SGDRule(std::vector<double> rates, std::int64_t batch) : rates_(std::move(rates)), batch_(batch) {}

    double run(const SequenceSource& source, const Penalty& penalty, const RuleState& state,
               std::span<const std::int32_t> order, int n_threads) const override;

  private:
    std::vector<double> rates_;
    std::int64_t batch_;
};

}  // namespace crfkit
