// f(w) = Σ_n weight_n (log Z_n − log Z_gold,n) + ½ Σ_d l2_d w_d², in single precision first and in double on
// request.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/forks.hpp"
#include "chain/evaluator.hpp"
#include "lattice/batch_evaluator.hpp"
#include "lattice/evaluator.hpp"
#include "training/penalty.hpp"
#include "training/sequence_loss.hpp"

namespace crfkit {

// Refuses an annotation that does not fit the data, in words.
void check_annotation(const Layout& layout, const Design& design, const Annotation& gold);
// Refuses a design and its gold labels that nothing can be trained on, in words.
void check_for_training(const Layout& layout, const Design& design, const Annotation& gold, int n_threads);

class Objective {
  public:
    // l2: one number for all weights, or one for each. Throws std::invalid_argument if things do not fit
    // together.
    Objective(std::shared_ptr<const Layout> layout, std::shared_ptr<const Design> design, Annotation gold,
              std::vector<double> l2, bool single_precision, int n_threads);

    std::int64_t n_weights() const { return layout_->n_weights(); }
    double value_and_gradient(const double* w, double* gradient);
    void hessian_vector(const double* w, const double* v, double* out);

    // Calls use(sequences) with the losses of single sequences, without penalty, while nobody else asks
    // anything. Not for a design in batches.
    template <class Function>
    void with_sequences(const Function& use) {
        const std::lock_guard one_at_a_time(mutex_);
        use(sequences());
    }
    std::span<const double> l2() const { return penalty_.l2(); }

    // From now on answers in double precision. Returns whether that is a change.
    bool refine();

    int n_threads;

  private:
    double evaluate(const double* w, const double* v, double* out);
    const SequenceSource& sequences();

    std::shared_ptr<const Layout> layout_;
    std::shared_ptr<const Design> design_;
    Annotation gold_;
    SquaredPenalty penalty_;
    std::vector<Block> blocks_;
    std::unique_ptr<Evaluator<float>> single_;
    std::unique_ptr<Evaluator<double>> double_;
    bool single_precision_;
    std::unique_ptr<ArcModel> arcs_;  // only for lattices and batches
    // In place of the above for a design with lattices.
    std::unique_ptr<LatticeData> lattices_;
    std::vector<LatticeBlock> lattice_blocks_;
    std::unique_ptr<LatticeEvaluator<float>> single_lattices_;
    std::unique_ptr<LatticeEvaluator<double>> double_lattices_;
    // In place of the above for a design in batches.
    std::vector<BatchBlock> batches_;
    std::unique_ptr<BatchEvaluator<float>> single_batches_;
    std::unique_ptr<BatchEvaluator<double>> double_batches_;
    std::unique_ptr<SequenceSource> sequences_;  // from the first question about single sequences on
    ForkMutex mutex_;  // the evaluators keep their tables: questions from several threads wait for each other
};

}  // namespace crfkit
