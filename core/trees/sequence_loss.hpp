// The sentences of a treebank, one at a time, at the weights that each of them touches.
//
// Scores of arcs with labels, [n + 1, n + 1, R] (head, dependent, label). A label's share of its arc is a
// softmax, and log Σ_r exp(score) is the score of the arc in the sum over all trees, so that training is
// exact:
//   ∂ log Z / ∂ score(h, m, r) = P(h → m) · share(r | h, m)
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/buffer.hpp"
#include "training/sequence_loss.hpp"
#include "trees/arc_layout.hpp"
#include "trees/graph.hpp"
#include "trees/sentence_features.hpp"

namespace crfkit {

// All that it is made from must outlive it.
class TreeSequences final : public SequenceSource {
  public:
    TreeSequences(const ArcLayout& arc_layout, const Treebank& sentences, const KnownTrees& known, bool one)
        : layout(arc_layout),
          treebank(sentences),
          trees(known),
          one_root(one),
          store(sentences.n_sentences()) {}

    std::int64_t n_sequences() const override { return treebank.n_sentences(); }
    std::int64_t n_slots() const override { return layout.n_weights(); }
    void pack(const double* w, double, double* slots) const override { std::copy_n(w, n_slots(), slots); }
    void unpack(const double* slots, double* w) const override { std::copy_n(slots, n_slots(), w); }
    void each_slot_range(const std::function<void(SlotRange)>& function) const override;
    std::unique_ptr<SequenceLoss> open() const override;

    const ArcLayout& layout;
    const Treebank& treebank;
    const KnownTrees& trees;
    const bool one_root;
    mutable FeatureStore store;
};

// Residuals: weight · (P − P_gold) of all labelled arcs [n + 1, n + 1, R].
class TreeSequence final : public SequenceLoss {
  public:
    explicit TreeSequence(const TreeSequences& source)
        : source_(source), features_(source.layout, &source.store) {}

    void load(std::int64_t n) override;
    std::int64_t n_residuals() const override { return features_.n_scores(); }
    double differentiate(const double* weights, double* residuals) override;
    void gradient(const double* residuals, double* gradient) override {
        features_.gradient(residuals, gradient);
    }
    // residuals = weight · (Hessian–vector product − gold Hessian–vector product) of the scores' direction.
    void hessian_vector(const double* weights, const double* direction, double* residuals);

  private:
    bool is_known() const;
    double subtract_known(double* residuals, double weight) const;
    double subtract_partly_known(double* residuals, double weight);
    const std::vector<double>& gold_scores();

    const TreeSequences& source_;
    SentenceFeatures features_;
    std::int64_t n_ = 0, first_ = 0;
    Buffer<double> scores_, sums_, factors_, marginals_, moves_, shift_;
    std::vector<double> allowed_, changes_;
};

}  // namespace crfkit
