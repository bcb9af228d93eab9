// Stochastic training methods as step rules: run(rule, state, order) takes the steps of one pass.
//
// A rule says how the weights move after a few sequences. What it knows between two passes is its state:
// arrays by name, among them "weights" [D], which run() changes in place. Where run() throws, as it does when
// it is interrupted, the state is the one after the steps so far.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "training/sequence_loss.hpp"

namespace crfkit {

// The arrays of a rule, for D weights.
class RuleState {
  public:
    RuleState(std::int64_t n_weights, std::map<std::string, std::span<double>> arrays)
        : n_weights(n_weights), arrays_(std::move(arrays)) {}
    bool has(const std::string& name) const { return arrays_.contains(name); }
    // The array of this name, [size] or [D]. Throws std::invalid_argument unless there is such a one.
    std::span<double> array(const std::string& name, std::int64_t size) const;
    std::span<double> array(const std::string& name) const { return array(name, n_weights); }

    const std::int64_t n_weights;  // D

  private:
    std::map<std::string, std::span<double>> arrays_;
};

// Σ_d (l1_d |w_d| + ½ l2_d w_d²). Strengths: one number for all weights, or one for each.
struct Penalty {
    std::span<const double> l1, l2;
};

// soft(x, a) = sign(x) max(|x| − a, 0), the proximal operator of a |x|.
inline double soft_threshold(double x, double a) { return x > a ? x - a : x < -a ? x + a : 0.0; }

// Slots by the strength of their l2: each strength once.
class PenaltyGroups {
  public:
    static constexpr std::size_t kMost = 256;
    // Of strengths by slot, or of one for all. Throws std::invalid_argument for more than kMost different
    // ones.
    explicit PenaltyGroups(std::span<const double> l2);
    // The same; nothing for more than kMost different ones.
    static std::optional<PenaltyGroups> find(std::span<const double> l2);
    // By slot; null where all are of group 0.
    const std::uint8_t* groups() const { return groups_.empty() ? nullptr : groups_.data(); }
    std::size_t of(std::int64_t d) const { return groups_.empty() ? 0 : groups_[d]; }
    std::vector<double> l2;  // [groups], ascending

  private:
    PenaltyGroups() = default;
    std::vector<std::uint8_t> groups_;  // by slot; empty: all of group 0
};

// Throws std::invalid_argument where an order has other entries than `least` to n_sequences − 1.
void check_order(std::span<const std::int32_t> order, std::int64_t n_sequences, std::int32_t least = 0);

class StepRule {
  public:
    virtual ~StepRule() = default;
};

// A rule that goes along the gradients of single sequences, to minimise
//   f(w) = Σ_n loss_n(w) + Σ_d (l1_d |w_d| + ½ l2_d w_d²)        over N sequences.
// A step along b of them takes the share b / N of the penalty and costs what these sequences touch: what it
// does to all other weights has a closed form, and is made up for when they are touched again.
class GradientRule : public StepRule {
  public:
    // Returns the sum of the losses, each before its step.
    virtual double run(const SequenceSource& source, const Penalty& penalty, const RuleState& state,
                       std::span<const std::int32_t> order, int n_threads) const = 0;
};

}  // namespace crfkit
