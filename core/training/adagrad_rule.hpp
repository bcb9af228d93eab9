// AdaGrad: a rate for each weight, and penalties that are exact.
#pragma once

#include <cstdint>
#include <span>

#include "training/step_rule.hpp"

namespace crfkit {

// AdaGrad's rates (Duchi et al. 2011) in the form of follow-the-regularised-leader (McMahan 2011,
// FTRL-Proximal). With G = Σ g² of the gradients g that a weight has met, each at its own weight w, and C the
// number of passes so far (a step along b sequences adds b / N),
//   z += g − (√(G + g²) − √G) / rate · w,       w = −soft(z, l1 C) / (√G / rate + l2 C)
// Without penalties that is w ← w − rate / √G · g.
//
// State: weights, z and root, which is √G, [D]; w is not read, as it follows from the others.
class AdaGradRule final : public GradientRule {
  public:
    // passes: C before the first step.
    AdaGradRule(double rate, double passes, std::int64_t batch)
        : rate_(rate), passes_(passes), batch_(batch) {}

    double run(const SequenceSource& source, const Penalty& penalty, const RuleState& state,
               std::span<const std::int32_t> order, int n_threads) const override;

  private:
    double rate_, passes_;
    std::int64_t batch_;
};

}  // namespace crfkit
