// Where a parser is wrong: the best tree of a sentence at the current weights against the right one.
#pragma once

#include <cstdint>

#include "training/mistakes.hpp"
#include "trees/k_best.hpp"
#include "trees/sentence_features.hpp"

namespace crfkit {

class TreeMistakes final : public Mistakes {
  public:
    TreeMistakes(const ArcLayout& layout, const Treebank& treebank, const KnownTrees& trees, const double* w,
                 bool one_root);

    std::int64_t n_sequences() const override { return treebank_.n_sentences(); }
    double weight(std::int64_t n) const override { return trees_.weights[n]; }
    void read_weights() override {}
    std::int64_t find(std::int64_t n, Difference& difference) override;
    void read_changes(const Difference&) override {}

  private:
    ScoredTree right_tree(std::int64_t first, const ScoredTree& predicted);

    const ArcLayout& layout_;
    const Treebank& treebank_;
    const KnownTrees& trees_;
    const double* w_;
    const bool one_root_;
    FeatureStore store_;
    SentenceFeatures features_;
    Buffer<double> weights_, scores_;
};

}  // namespace crfkit
