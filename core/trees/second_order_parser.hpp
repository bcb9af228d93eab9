// A trained second-order parser's answers for the sentences of a treebank.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trees/arc_context.hpp"
#include "trees/k_best.hpp"
#include "trees/pruner.hpp"
#include "trees/second_order_sums.hpp"

namespace crfkit {

// The parts of a sentence and their scores (TreeParts).
struct ScoredParts {
    std::vector<Arc> arcs;
    std::vector<SecondOrderPart> second_order;
    std::vector<double> scores;
};

// Trees are made of the arcs that a first-order model leaves over (pruner.hpp).
class SecondOrderParser {
  public:
    // w [D].
    SecondOrderParser(std::shared_ptr<const PruningModel> pruning, std::shared_ptr<const ArcLayout> layout,
                      const double* w, bool one_root, SumsOf sums);

    const ArcLayout& layout() const { return weights_.layout(); }
    const ArcWeights& weights() const { return weights_; }
    // Heads and labels [T] of the best trees, or of those with the most arcs right in expectation.
    void best(const Treebank& treebank, bool minimum_risk, std::int32_t* heads, std::int32_t* labels,
              int n_threads) const;
    // The best trees with bounds on all scores (SecondOrderSums::bounded_best).
    std::vector<BoundedTree> bounded_best(const Treebank& treebank, std::int64_t most_iterations,
                                          int n_threads) const;
    std::vector<std::vector<ScoredTree>> k_best(const Treebank& treebank, std::int64_t k,
                                                int n_threads) const;
    // log Z [N].
    void log_partitions(const Treebank& treebank, double* out, int n_threads) const;
    // log Z of the trees that agree with what is known, less log Z of all, [N]: −inf where none agrees. With
    // `add_arcs` the arcs that are known count as candidates too, as in training.
    void log_likelihoods(const Treebank& treebank, const KnownTrees& known, bool add_arcs, double* out,
                         int n_threads) const;
    ScoredParts parts(const Treebank& treebank, std::int64_t n) const;
    // Of the trees of sentence n in which `dependent` has each of these heads.
    std::vector<HeadContext> explain(const Treebank& treebank, std::int64_t n, std::int64_t dependent,
                                     std::span<const std::int32_t> heads) const;
    // P(h → m), all sentences one after the other, [Σ (n + 1)²]; `labelled`: P(h → m, r), [Σ (n + 1)² R].
    void marginals(const Treebank& treebank, bool labelled, double* out, int n_threads) const;

  private:
    struct Scorer;
    void score(const Treebank& treebank, std::int64_t n, const KnownTrees* known, Scorer& scorer) const;
    template <class Function>
    void each(const Treebank& treebank, const KnownTrees* known, int n_threads, const Function& answer) const;

    std::shared_ptr<const PruningModel> pruning_;
    ArcWeights weights_;
    bool one_root_;
    SumsOf open_sums_;
};

}  // namespace crfkit
