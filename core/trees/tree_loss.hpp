// Σ_n weight_n (log Z_n − log Z_gold,n) over the trees of a treebank, always in double precision.
#pragma once

#include <memory>

#include "training/data_loss.hpp"
#include "trees/sequence_loss.hpp"

namespace crfkit {

class TreeLoss final : public DataLoss {
  public:
    // Throws std::invalid_argument where things do not fit together, and where no tree agrees with what is
    // known of a sentence.
    TreeLoss(std::shared_ptr<const ArcLayout> layout, std::shared_ptr<const Treebank> treebank,
             KnownTrees trees, bool one_root, int n_threads);

    double evaluate(const double* w, double* gradient) override { return sum(w, nullptr, gradient); }
    void hessian_vector(const double* w, const double* v, double* out) override { sum(w, v, out); }
    const SequenceSource& sequences() override { return sequences_; }
    std::unique_ptr<Mistakes> mistakes(const double* w) override;

  private:
    double sum(const double* w, const double* v, double* out);

    std::shared_ptr<const ArcLayout> layout_;
    std::shared_ptr<const Treebank> treebank_;
    KnownTrees trees_;
    TreeSequences sequences_;
};

}  // namespace crfkit
