// Σ_n weight_n (log Z_n − log Z_gold,n) of a chain with patterns, over the trellises of its data.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/annotation.hpp"
#include "data/blocks.hpp"
#include "patterns/batches.hpp"
#include "patterns/evaluator.hpp"
#include "patterns/trellis.hpp"
#include "patterns/trellis_parts.hpp"
#include "training/data_loss.hpp"
#include "training/part_loss.hpp"

namespace crfkit {

// The loss of patterns over trellises. functions: null where the design of the trellises has the features.
// Facets, features of arcs and functions beside patterns are answered from parts (PartLoss), all else by
// PatternLoss. n_weights: D; the weights of the patterns end at or before it. Throws std::invalid_argument if
// things do not fit together.
std::unique_ptr<DataLoss> pattern_loss(std::shared_ptr<const Trellises> trellises,
                                       std::shared_ptr<const FunctionSlices> functions, Annotation gold,
                                       std::int64_t n_weights, bool single_precision, int n_threads);

class PatternLoss final : public TwoPrecisions<PatternLoss, PatternEvaluator> {
  public:
    // As for pattern_loss, for features of positions.
    PatternLoss(std::shared_ptr<const Trellises> trellises, Annotation gold, std::int64_t n_weights,
                bool single_precision, int n_threads);

    const SequenceSource& sequences() override { return sequences_; }
    std::unique_ptr<Mistakes> mistakes(const double* w) override {
        return std::make_unique<PartMistakes>(parts_, w);
    }

    template <class Real>
    std::unique_ptr<PatternEvaluator<Real>> open() {
        if (!batches_) {
            blocks_ = cut_into_blocks(*trellises_->layout, *trellises_->design, n_threads);
            batches_ = std::make_unique<PatternBatches>(*trellises_, gold_, blocks_);
        }
        return std::make_unique<PatternEvaluator<Real>>(*trellises_, gold_, blocks_, *batches_, n_weights);
    }

  private:
    std::shared_ptr<const Trellises> trellises_;
    Annotation gold_;
    TrellisParts parts_;
    PartSequences sequences_;
    std::vector<Block> blocks_;
    std::unique_ptr<PatternBatches> batches_;  // from the first question about the whole data set on
};

}  // namespace crfkit
