// The parts of one sentence with their scores at given weights, and sums over its trees.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "hyperpaths/engine.hpp"
#include "hyperpaths/viterbi.hpp"
#include "trees/k_best.hpp"
#include "trees/part_graph.hpp"

namespace crfkit {

// Scores are [arcs, R] of labelled arcs, then one for each part of second order, as SentenceFeatures gives them.
// Labels are summed first: log Σ_r exp(score(h, m, r)) is the score of an arc, and
//   ∂ log Z / ∂ score(h, m, r) = P(h → m) · share(r | h, m).
class SecondOrderSums {
  public:
    // log Z, −inf where there is no tree; fills probs, in the shape of the scores.
    double marginals(PartGraph& parts, std::int64_t n_labels, const double* scores, double* probs);
    // After marginals with the same scores, ∇² log Z · direction, in the shape of the scores.
    void hessian_vector(const PartGraph& parts, std::int64_t n_labels, const double* probs,
                        const double* direction, double* out);
    double log_partition(PartGraph& parts, std::int64_t n_labels, const double* scores);
    // The best tree. Throws NoTree.
    ScoredTree best(PartGraph& parts, std::int64_t n_labels, const double* scores);

  private:
    void sum_labels(PartGraph& parts, std::int64_t n_labels, const double* scores, double* shares);

    HyperpathEngine engine_;
    ViterbiWorkspace viterbi_;
    Buffer<double> part_scores_, part_probs_, shift_, shares_;
    std::vector<double> changes_;
};

}  // namespace crfkit
