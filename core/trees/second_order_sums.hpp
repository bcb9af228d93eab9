// Sums over the trees of one sentence, and its best trees, with parts of second order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "trees/k_best.hpp"
#include "trees/tree_parts.hpp"

namespace crfkit {

// For one sentence after the other, on one thread. Scores are those of its parts (TreeParts::n_scores);
// labels are summed first: log Σ_r exp(score(h, m, r)) is the score of an arc, and
//   ∂ log Z / ∂ score(h, m, r) = P(h → m) · share(r | h, m).
class SecondOrderSums {
  public:
    virtual ~SecondOrderSums() = default;

    // Goes to a sentence with these arcs, ascending; the questions below are about it.
    virtual void load(std::int64_t n_words, std::span<const Arc> arcs) = 0;
    virtual const TreeParts& parts() const = 0;
    // log Z, −inf where there is no tree; fills probs, in the shape of the scores.
    virtual double marginals(std::int64_t n_labels, const double* scores, double* probs) = 0;
    // ∇² log Z · direction, in the shape of the scores.
    virtual void hessian_vector(std::int64_t n_labels, const double* scores, const double* direction,
                                double* out) = 0;
    // The best tree. Throws NoTree.
    virtual ScoredTree best(std::int64_t n_labels, const double* scores) = 0;
    // The tree with the highest sum of the labelled arcs' probabilities.
    virtual ScoredTree minimum_risk(std::int64_t n_labels, const double* probs) = 0;
    virtual std::vector<ScoredTree> k_best(std::int64_t n_labels, const double* scores, std::int64_t k) = 0;
};

// Makes a new one, for one thread.
using SumsOf = std::function<std::unique_ptr<SecondOrderSums>()>;

// Over projective trees, exactly.
std::unique_ptr<SecondOrderSums> projective_sums(bool one_root);

// Over all trees, approximately (spanning_sums.cpp): log Z and probabilities by belief propagation, the
// Hessian–vector product by differences, best trees by hill climbing.
std::unique_ptr<SecondOrderSums> spanning_sums(bool one_root);

}  // namespace crfkit
