// How the beliefs of belief propagation change with the scores, at a fixed point of the messages.
//
// With λ = ∂ log m the changes of the messages and ρ the appearance probabilities (1 unless tree-reweighted),
// at a fixed point (message by message, up to constants):
//   to a table       ∂ log ν_{j→f}(x_j) = ∂ own_j(x_j) + Σ_g ρ_g λ_{g→j}(x_j) − λ_{f→j}(x_j)
//   to a variable    λ_{f→i}(x_i) = E[∂ score_f(x_f) / ρ_f + Σ_{j≠i} ∂ log ν_{j→f}(x_j) | x_i]
// where the expectation is under p(x_f | x_i) ∝ exp(score_f / ρ_f) Π_{j≠i} ν_{j→f}. This is linear in λ: it
// is solved by the sweeps that belief propagation makes, which converge wherever those do near the fixed
// point. Then ∂ b_f = b_f (a − E_{b_f}[a]) with a = ∂ score_f / ρ_f + Σ_j ∂ log ν_{j→f}.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graphs/message_plan.hpp"

namespace crfkit {

class BeliefDerivative {
  public:
    // log_messages: those of a fixed point, numbered as in the plan, −inf where a value is impossible.
    // appearance: ρ [F], or empty: 1. damping: that with which the messages have converged. The plan must
    // outlive it.
    BeliefDerivative(const MessagePlan& plan, std::span<const double> scores,
                     std::span<const double> log_messages, std::span<const double> appearance,
                     double damping);

    // Fills changes [n_scores] of the beliefs of tables along a direction [n_scores] of the scores. False if
    // the sweeps do not converge: then this is no fixed point that the updates would keep.
    bool along(std::span<const double> direction, double* changes);

  private:
    double appearance(std::int64_t f) const { return appearance_.empty() ? 1.0 : appearance_[f]; }
    void weigh(std::int64_t f, std::span<const double> scores, const std::vector<double>& own,
               std::span<const double> log_messages);
    double sweep(std::span<const double> direction, bool backwards);
    double update(std::int64_t f, std::span<const double> direction);

    const MessagePlan& plan_;
    const FactorGraph& graph_;
    std::vector<double> appearance_;  // [F], or empty
    double damping_;
    std::vector<double> beliefs_;  // [n_scores] of all tables
    std::vector<std::vector<double>>
        given_;                            // [E] p(x_f | x_i) for the entries of the table; empty: no message
    std::vector<std::int32_t> reference_;  // [E] the value whose λ is 0: the likeliest of the message
    std::vector<double> lambda_;           // [messages]
    std::vector<double> totals_;           // [values] ∂ own + Σ ρ λ
    std::vector<double> fresh_, cavities_;
    std::vector<std::int32_t> at_;
};

}  // namespace crfkit
