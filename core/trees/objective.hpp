// f(w) = Σ_n weight_n (log Z_n − log Z_gold,n) + ½ Σ_d l2_d w_d² over the trees of a treebank.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/forks.hpp"
#include "training/penalty.hpp"
#include "trees/sequence_loss.hpp"

namespace crfkit {

class TreeObjective {
  public:
    // l2: one number for all weights, or one for each. Throws std::invalid_argument where things do not fit
    // together, and where no tree agrees with what is known of a sentence.
    TreeObjective(std::shared_ptr<const ArcLayout> layout, std::shared_ptr<const Treebank> treebank,
                  KnownTrees trees, std::vector<double> l2, bool one_root, int n_threads);

    std::int64_t n_weights() const { return layout_->n_weights(); }
    double value_and_gradient(const double* w, double* gradient);
    void hessian_vector(const double* w, const double* v, double* out);

    // Calls use(sequences) with the losses of single sentences, without penalty.
    template <class Function>
    void with_sequences(const Function& use) {
        const std::lock_guard one_at_a_time(mutex_);
        use(sequences_);
    }
    std::span<const double> l2() const { return penalty_.l2(); }

    const int n_threads;

  private:
    double evaluate(const double* w, const double* v, double* out);

    std::shared_ptr<const ArcLayout> layout_;
    std::shared_ptr<const Treebank> treebank_;
    KnownTrees trees_;
    SquaredPenalty penalty_;
    TreeSequences sequences_;
    ForkMutex mutex_;
};

}  // namespace crfkit
