// A trained parser's answers for the sentences of a treebank.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trees/arc_weights.hpp"
#include "trees/graph.hpp"
#include "trees/k_best.hpp"
#include "trees/treebank.hpp"

namespace crfkit {

class TreeParser {
  public:
    // w [D].
    TreeParser(std::shared_ptr<const ArcLayout> layout, const double* w, bool one_root);

    const ArcLayout& layout() const { return weights_.layout(); }
    const ArcWeights& weights() const { return weights_; }
    // Heads and labels [T] of the best trees, or of those with the most arcs right in expectation.
    void best(const Treebank& treebank, bool minimum_risk, std::int32_t* heads, std::int32_t* labels,
              int n_threads) const;
    std::vector<std::vector<ScoredTree>> k_best(const Treebank& treebank, std::int64_t k,
                                                int n_threads) const;
    // log Z [N]; with `known`, of the trees that agree: −inf where there are none.
    void log_partitions(const Treebank& treebank, const KnownTrees* known, double* out, int n_threads) const;
    // P(h → m), all sentences one after the other, [Σ (n + 1)²]; `labelled`: P(h → m, r), [Σ (n + 1)² R].
    void marginals(const Treebank& treebank, bool labelled, double* out, int n_threads) const;
    // Scores of labelled arcs, [Σ (n + 1)² R].
    void scores(const Treebank& treebank, double* out, int n_threads) const;

  private:
    template <class Function>
    void each(const Treebank& treebank, int n_threads, const Function& answer) const;

    ArcWeights weights_;
    bool one_root_;
};

// Where the arcs of each sentence begin, counted in arcs: [N + 1], Σ (n + 1)².
std::vector<std::int64_t> arc_places(const Treebank& treebank);

}  // namespace crfkit
