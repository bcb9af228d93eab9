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

inline constexpr std::int64_t kMostIterations = 1000;  // of a search for the best tree, if no number is given

// A tree, and a bound that no tree's score exceeds: where they are equal, none is better.
struct BoundedTree {
    ScoredTree tree;
    double bound;
    std::int64_t n_iterations;  // of the search
};

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
    // The same with a bound, which takes some iterations where `best` is not exact.
    virtual BoundedTree bounded_best(std::int64_t n_labels, const double* scores,
                                     std::int64_t most_iterations) {
        (void)most_iterations;
        ScoredTree tree = best(n_labels, scores);
        return {tree, tree.score, 0};
    }
    // The tree with the highest sum of the labelled arcs' probabilities.
    virtual ScoredTree minimum_risk(std::int64_t n_labels, const double* probs) = 0;
    virtual std::vector<ScoredTree> k_best(std::int64_t n_labels, const double* scores, std::int64_t k) = 0;
};

// Makes a new one, for one thread.
using SumsOf = std::function<std::unique_ptr<SecondOrderSums>()>;

// Over projective trees, exactly.
std::unique_ptr<SecondOrderSums> projective_sums(bool one_root);

// Over all trees, approximately (spanning_sums.cpp): log Z and probabilities by belief propagation, the
// Hessian–vector product by differences, best trees by hill climbing; bounds by dual decomposition
// (tree_dual.hpp).
std::unique_ptr<SecondOrderSums> spanning_sums(bool one_root);

}  // namespace crfkit
