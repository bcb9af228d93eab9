// Mistake-driven training: a step for each sequence whose best output is wrong, none for the others.
//
// With d = φ(right) − φ(predicted), deficit = −w·d ≥ 0 by how much the wrong output scores more, n the number
// of wrong labels and c the weight of the sequence, a rule moves the weights and says what the loss was.
#pragma once

#include <cstdint>
#include <span>

#include "training/mistakes.hpp"
#include "training/step_rule.hpp"

namespace crfkit {

// A mistake, and the weights that it moves.
struct Mistake {
    const Difference& difference;  // d
    double n_wrong;                // n
    double weight;                 // c
    double time;                   // the sum of the weights of the sequences before this one
    std::span<double> w;           // [D]

    double deficit() const;
    // w += step · d. The mean of the weights over all sequences is kept without touching all weights: a step
    // by x at time s adds (s + 1) x to `weighted_steps`, and the mean at time t is w − weighted_steps / (t +
    // 1). The weights before the first sequence count for 1, those after each sequence for its weight.
    void move(double step, std::span<double> weighted_steps) const;
};

// State: weights [D]; time [1], to which the weight of each sequence is added; and what `beside` says.
class MistakeRule : public StepRule {
  public:
    // What the rule keeps beside each weight, [D], or nothing. Here: weighted_steps, where there is such an
    // array.
    virtual std::span<double> beside(const RuleState& state) const;
    // Moves the weights. Returns the loss before.
    virtual double step(const Mistake& mistake, std::span<double> beside) const = 0;
};

// Perceptron (Collins 2002):  w += c d        loss: deficit
class PerceptronRule final : public MistakeRule {
  public:
    double step(const Mistake& mistake, std::span<double> weighted_steps) const override;
};

// Passive-aggressive (Crammer et al. 2006):  w += τ d        loss: deficit + margin
//   margin = √n, or 1 if not `error_sensitive`; τ by variant, with C = c · aggressiveness:
//   0: loss / |d|²     1: min(C, loss / |d|²)     2: loss / (|d|² + 1 / (2 C))
class PassiveAggressiveRule final : public MistakeRule {
  public:
    PassiveAggressiveRule(int variant, double aggressiveness, bool error_sensitive)
        : variant_(variant), aggressiveness_(aggressiveness), error_sensitive_(error_sensitive) {}
    double step(const Mistake& mistake, std::span<double> weighted_steps) const override;

  private:
    int variant_;
    double aggressiveness_;
    bool error_sensitive_;
};

// AROW (Crammer et al. 2009; for sequences Mejer & Crammer 2010), r = gamma / c; state: variances v [D].
//   w += loss / (Σ v d² + r) · v ∘ d,   1 / v += d² / r        loss: deficit + n
class AROWRule final : public MistakeRule {
  public:
    explicit AROWRule(double gamma) : gamma_(gamma) {}
    std::span<double> beside(const RuleState& state) const override { return state.array("variances"); }
    double step(const Mistake& mistake, std::span<double> variances) const override;

  private:
    double gamma_;
};

}  // namespace crfkit
