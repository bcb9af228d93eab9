// The stochastic average gradient with non-uniform sampling.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "training/step_rule.hpp"

namespace crfkit {

// SAG-NUS (Schmidt et al., Non-uniform stochastic average gradient method for training conditional random
// fields, AISTATS 2015). Minimises (1/N) [Σ_n loss_n(w) + ½ Σ_d l2_d w_d²]; there is no l1. The residuals of
// every sequence (marginals − gold marginals) are kept from its last visit, in place of its gradient Φᵀ
// residuals, which is longer. A step visits one sequence i and goes along the average of all gradients that
// are known, m of them:
//   s ← s + Φᵀ(residuals_i now − residuals_i kept),      w ← (1 − α l2 / N) w − (α / m) s
// The step length comes from estimates L_i of the Lipschitz constant of the gradient of sequence i, found by
// a line search along it: α = ½ (1 / (L_max + λ) + 1 / (L_mean + λ)), λ = max l2 / N. Half of the sequences
// are drawn with equal probability, half in proportion to L_i.
//
// State: weights [D]; gradient_sum [D], s above; residuals [source.residual_ptr().back()]; visits [N, 4], the
// fields of Visit; n_losses [1], to which the number of losses that were asked for is added: one a step, and
// those of line searches.
class SAGRule final : public GradientRule {
  public:
    // uniforms [steps of a pass, 2] in [0, 1): by them a step whose entry of the order is −1 draws its
    // sequence.
    explicit SAGRule(std::vector<double> uniforms) : uniforms_(std::move(uniforms)) {}

    double run(const SequenceSource& source, const Penalty& penalty, const RuleState& state,
               std::span<const std::int32_t> order, int n_threads) const override;

  private:
    std::vector<double> uniforms_;
};

}  // namespace crfkit
