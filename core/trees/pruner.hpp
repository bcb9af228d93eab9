// A first-order model that leaves few arcs to a second-order one.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "trees/arc_scorer.hpp"
#include "trees/candidate_arcs.hpp"

namespace crfkit {

// The first-order model, weights w [D].
struct PruningModel {
    PruningModel(std::shared_ptr<const ArcLayout> layout, const double* w, Pruning limits)
        : weights(std::move(layout), w), pruning(limits) {}

    const ArcWeights weights;
    const Pruning pruning;
};

// Finds the candidates of one sentence after the other, on one thread.
class Pruner {
  public:
    Pruner(const PruningModel& model, bool one_root)
        : model_(model), one_root_(one_root), scorer_(model.weights) {}

    // The arcs of sentence n, ascending. Those of one projective tree are always among them: of the best
    // tree, after its crossing arcs were lifted. With `known`, so are all heads that are known, and the tree
    // agrees with them, if they allow a projective one. Throws NoTree where no tree agrees.
    std::vector<Arc> find(const Treebank& treebank, std::int64_t n, const KnownTrees* known);

  private:
    // The best tree of sentence n that has the heads that are known, and marginals_ of the arcs of all trees.
    std::vector<std::int32_t> find_best(const Treebank& treebank, std::int64_t n, const KnownTrees* known);
    void add_likely(std::int32_t m, std::int64_t n_words, std::vector<Arc>& found);

    const PruningModel& model_;
    const bool one_root_;
    ArcScorer scorer_;
    Buffer<double> scores_, sums_, marginals_;
    std::vector<std::int32_t> heads_;
};

// Of all sentences of a treebank.
CandidateArcs find_candidates(const PruningModel& model, const Treebank& treebank, const KnownTrees* known,
                              bool one_root, int n_threads);

}  // namespace crfkit
