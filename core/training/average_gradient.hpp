// The stochastic average gradient with non-uniform sampling (Schmidt and others, AISTATS 2015).
//
// Minimises (1/N) [Σ_n loss_n(w) + ½ Σ_d l2_d w_d²]. The residuals of every sequence are kept from its last
// visit, in place of its gradient, which is longer. A step visits one sequence i and goes along the average
// of all gradients that are known, m of them:
//   s ← s + Φᵀ(residuals_i now − residuals_i kept),      w ← (1 − α l2 / N) w − (α / m) s
// The step length comes from estimates L_i of how fast the gradient of sequence i changes, found by a line
// search along it, α = ½ (1 / (L_max + λ) + 1 / (L_mean + λ)), λ = max l2 / N. Half of the sequences are
// drawn with equal probability, half in proportion to L_i.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "training/sequence_loss.hpp"
#include "training/stochastic.hpp"

namespace crfkit {

// Numbers that are kept for each sequence.
struct Visit {
    double lipschitz;  // L_i; 0: never visited
    double loss;       // at the last visit
    double pause;      // visits until its next line search
    double streak;     // line searches in a row that found L_i large enough
};

// Sums and maxima over N numbers, one of which changes at a time.
class NumberTree {
  public:
    explicit NumberTree(std::int64_t n);
    void set(std::int64_t i, double number);
    double sum() const { return sums_[1]; }
    double largest() const { return largest_[1]; }
    // i with probability number_i / sum, by a uniform number in [0, 1).
    std::int64_t draw(double uniform) const;

  private:
    std::int64_t n_, first_;  // leaves first_.. of a heap
    std::vector<double> sums_, largest_;
};

// Where residuals of each sequence begin, [N + 1].
std::vector<std::int64_t> residual_places(const SequenceSource& source, int n_threads);

class AverageGradient {
  public:
    // All arrays are changed in place: w [D], slopes [D] (s above), residuals [residual_places().back()],
    // visits [N].
    AverageGradient(const SequenceSource& source, std::span<const double> l2,
                    std::span<const std::int64_t> places, double* w, double* slopes, double* residuals,
                    std::span<Visit> visits);

    // A step for each entry of `order`: that sequence, or where it is −1, one that is drawn by the two
    // uniform numbers of the step. uniforms [steps, 2]. Returns how often losses were asked for: once a step,
    // and for line searches.
    std::int64_t pass(std::span<const std::int32_t> order, std::span<const double> uniforms);

  private:
    void read();
    void visit(std::int64_t i);
    void search(std::int64_t i, double loss);
    void step();
    void fold();

    const SequenceSource& source_;
    const PenaltyGroups groups_;
    const std::span<const std::int64_t> places_;
    double *w_, *s_;             // [D]
    Buffer<double> v_, slopes_;  // by slot
    double* residuals_;
    const std::span<Visit> visits_;
    NumberTree tree_;
    std::unique_ptr<SequenceLoss> sequence_;
    std::int64_t n_visited_ = 0, n_losses_ = 0;
    // w = P v, and while a weight is not touched, v loses slope · (R − R when it was last touched).
    struct Sums {
        double P = 1, R = 0;
    };
    std::vector<Sums> sums_;  // [groups]
    // R when a weight was last touched: kept where its run begins, or for each slot where there are groups.
    Buffer<double> stamps_;
    Buffer<double> weights_, gradient_, trial_;  // of the sequence that is visited
    Buffer<double> fresh_, scratch_;             // its residuals
};

}  // namespace crfkit
