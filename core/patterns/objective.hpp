// The training objective of a model with patterns, see PatternEvaluator and SquaredPenalty.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/forks.hpp"
#include "data/annotation.hpp"
#include "data/blocks.hpp"
#include "patterns/batches.hpp"
#include "patterns/evaluator.hpp"
#include "patterns/trellis.hpp"
#include "training/penalty.hpp"

namespace crfkit {

class PatternObjective {
  public:
    // n_weights: D; the weights of the patterns end at or before it. Throws std::invalid_argument if things
    // do not fit together.
    PatternObjective(std::shared_ptr<const Trellises> trellises, Annotation gold, std::vector<double> l2,
                     std::int64_t n_weights, bool single_precision, int n_threads);

    std::int64_t n_weights() const { return penalty_.n_weights(); }
    double value_and_gradient(const double* w, double* gradient);
    void hessian_vector(const double* w, const double* v, double* out);
    // From now on answers in double precision. Returns whether that is a change.
    bool refine();

  private:
    double evaluate(const double* w, const double* v, double* out);

    std::shared_ptr<const Trellises> trellises_;
    Annotation gold_;
    SquaredPenalty penalty_;
    bool single_precision_;
    int n_threads_;
    std::vector<Block> blocks_;
    std::unique_ptr<PatternBatches> batches_;
    std::unique_ptr<PatternEvaluator<float>> single_;
    std::unique_ptr<PatternEvaluator<double>> double_;
    ForkMutex mutex_;  // the evaluators keep their tables: questions from several threads wait
};

}  // namespace crfkit
