// The loss of a data set of word lattices: value and gradient by WordLatticeEvaluator, everything else, and
// scores beyond its range, by the path engine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "segments/word_lattice_evaluator.hpp"
#include "training/part_loss.hpp"

namespace crfkit {

class WordLatticeLoss final : public DataLoss {
  public:
    // As for WordLatticeParts.
    WordLatticeLoss(std::shared_ptr<const WordLattices> data, Annotation gold, std::int64_t n_weights,
                    int n_threads);

    double evaluate(const double* w, double* gradient) override;
    void hessian_vector(const double* w, const double* v, double* out) override {
        parts_.hessian_vector(w, v, out);
    }
    const SequenceSource& sequences() override { return parts_.sequences(); }
    std::unique_ptr<Mistakes> mistakes(const double* w) override { return parts_.mistakes(w); }

  private:
    std::shared_ptr<const WordLattices> data_;
    std::vector<double> weights_;  // [N]
    PartLoss parts_;
    WordLattices gold_;  // the arcs that the annotation allows
    WordArcScores arcs_;
    WordScores transitions_;
    WordLatticeEvaluator all_, allowed_;
};

}  // namespace crfkit
