// Stochastic descent: steps along few sequences, each at the cost of the weights that they touch.
//
// All of them minimise f(w) = Σ_n loss_n(w) + Σ_d (l1_d |w_d| + ½ l2_d w_d²) over N sequences. A step along b
// of them takes the share b/N of the penalty. What a step does to weights that it does not touch has a closed
// form, and is made up for when they are touched again.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "training/sequence_loss.hpp"

namespace crfkit {

// Strengths: one number for all weights, or one for each.
struct Penalty {
    std::span<const double> l1, l2;
};

// The weights of one pass in the order of its steps: sequences order[k·batch]..order[(k+1)·batch − 1] make
// step k. Their losses and gradients are all taken before the step, on several threads, and add up in this
// order: the same bits for any number of threads. However large a batch, few sequences are open at a time.
struct Steps {
    std::span<const std::int32_t> order;
    std::int64_t batch;
    int n_threads;

    // Throws std::invalid_argument, in words, where the order names sequences that there are not.
    void check(const SequenceSource& source) const;
    std::int64_t n_steps() const { return (static_cast<std::int64_t>(order.size()) + batch - 1) / batch; }
};

// Slots by the strength of their l2: each strength once.
class PenaltyGroups {
  public:
    static constexpr std::size_t kMost = 256;
    // Throws std::invalid_argument for more than kMost different strengths.
    explicit PenaltyGroups(std::span<const double> l2);
    std::size_t of(std::int64_t d) const { return groups_.empty() ? 0 : groups_[d]; }
    std::vector<double> l2;  // [groups]

  private:
    std::vector<std::uint8_t> groups_;  // by slot; empty: all of group 0
};

// The gradient of a step along several sequences, and the runs that they touch, each once.
class StepGradient {
  public:
    // Begins at 0 for all slots.
    void reset(std::int64_t n_slots);
    // Adds the gradient of one sequence, run after run.
    void add(const std::vector<Run>& runs, const double* gradient);
    // Calls use(runs, gradient, size) with all that was added, and begins at 0 again.
    template <class Function>
    void release(const Function& use) {
        gather();
        use(runs_, gathered_.data(), size_);
        forget();
    }

  private:
    void gather();
    void forget();

    Buffer<double> sum_;             // by slot
    std::vector<std::uint8_t> met_;  // by the slot where a run begins: whether it is among runs_
    std::vector<Run> runs_;
    std::int64_t size_ = 0;    // slots of runs_
    Buffer<double> gathered_;  // [size_]
};

// Stochastic gradient descent. Step k with rate η along b sequences, c = η b / N:
//   w ← soft(w − η Σ ∇loss_n(w), c l1) / (1 + c l2),         soft(x, a) = sign(x) max(|x| − a, 0)
// the proximal form of the penalty, which is stable for every strength.
//
// A weight that no step touches keeps v in w = P v, where P = Π 1 / (1 + c l2), but for l1, which takes
// l1 · c / P off |v| at each step. With Q = Σ c / P, and A = Σ P and B = Σ P Q for the sum of the iterates,
// what steps i..k−1 did to it follows from the tables at i and k alone. They begin anew before P becomes so
// small that differences of A and B drown, and before they have more entries than there are weights.
class GradientSteps {
  public:
    GradientSteps(const SequenceSource& source, const Penalty& penalty);

    // One pass; rates has one number for each step. w [D] is changed in place. With `total` [D], the sum of
    // the weights after each step is added to it. Returns the sum of the losses, each before its step.
    double pass(double* w, double* total, const Steps& steps, std::span<const double> rates);

    // What the driver of the steps asks; see stochastic.cpp.
    void read(const std::vector<Run>& runs, double* to) const;
    void begin_step(std::int64_t k);
    void move(const std::vector<Run>& runs, const double* weights, const double* gradient);
    void end_step(std::int64_t n_sequences);

  private:
    struct Sums {
        double P = 1, Q = 0, A = 0, B = 0;
    };
    double l1_of(std::int64_t d) const { return l1_[l1_.size() == 1 ? 0 : d]; }
    bool is_even() const { return l1_.size() == 1 && sums_.size() == 1; }
    void apply(const std::vector<Run>& runs, const double* gradient);
    bool tables_are_full() const;
    void settle(Run run);
    double sum_of_iterates(std::int64_t d, const std::vector<Sums>& sums, std::size_t from) const;
    void fold();

    const SequenceSource& source_;
    const std::vector<double> l1_;  // by slot, or one
    const PenaltyGroups groups_;
    const bool has_l1_;
    bool averaging_ = false, lazy_ = false;
    bool alone_ = true;         // steps along single sequences
    StepGradient step_;         // of the others
    Buffer<double> v_, total_;  // by slot
    std::span<const double> rates_;
    double rate_ = 0;
    std::vector<std::vector<Sums>>
        sums_;  // [groups][steps since the last fold + 1]; the last alone unless lazy
    std::vector<std::uint32_t> stamps_;  // where a run begins: the step up to which it is settled; or empty
};

// AdaGrad's rates with penalties that are exact: follow the regularised leader (McMahan 2011, FTRL-Proximal).
// With G = Σ g² of the gradients g that a weight has met, each at its own weight w, and C the number of
// passes so far (a step along b sequences adds b / N),
//   z += g − (√(G + g²) − √G) / rate · w,       w = −soft(z, l1 C) / (√G / rate + l2 C)
// Without penalties that is w ← w − rate / √G · g.
class AdaptiveSteps {
  public:
    AdaptiveSteps(const SequenceSource& source, const Penalty& penalty, double rate, double passes);

    // One pass. z and root [D], which is √G, are changed in place; w [D] is set to the weights after it.
    // Returns the sum of the losses, each before its step.
    double pass(double* w, double* z, double* root, const Steps& steps);

    void read(const std::vector<Run>& runs, double* to) const;
    void begin_step(std::int64_t) {}
    void move(const std::vector<Run>& runs, const double* weights, const double* gradient);
    void end_step(std::int64_t n_sequences);

  private:
    const SequenceSource& source_;
    const std::vector<double> l1_, l2_;  // by slot, or one
    Buffer<double> z_, root_;            // by slot
    AdaptiveWeights weights_;
    bool alone_ = true;      // steps along single sequences
    StepGradient step_;      // of the others
    Buffer<double> before_;  // the weights that such a step moves
};

}  // namespace crfkit
