#include "patterns/pattern_loss.hpp"

#include <stdexcept>

#include "data/blocks.hpp"
#include "data/candidates.hpp"
#include "patterns/batches.hpp"
#include "patterns/evaluator.hpp"
#include "patterns/trellis_parts.hpp"
#include "training/part_loss.hpp"

namespace crfkit {
namespace {

// For features of positions.
class PatternLoss final : public TwoPrecisions<PatternLoss> {
  public:
    PatternLoss(std::shared_ptr<const Trellises> trellises, Annotation gold, std::int64_t weights,
                bool single_precision, int threads)
        : TwoPrecisions(weights, trellises->design->n_sequences(), single_precision, threads),
          trellises_(std::move(trellises)),
          gold_(std::move(gold)),
          parts_(trellises_, nullptr, gold_, weights),
          sequences_(parts_) {
        if (!trellises_->design->is_split())
            throw std::invalid_argument("the design was not made for training with patterns");
    }

    const SequenceSource& sequences() override { return sequences_; }
    std::unique_ptr<Mistakes> mistakes(const double* w) override {
        return std::make_unique<PartMistakes>(parts_, w);
    }

    template <class Real>
    std::unique_ptr<DataEvaluator> open() {
        if (!batches_) {
            grouped_.emplace(*trellises_->layout, *trellises_->design, BlockUse::one_by_one, n_threads);
            batches_ = std::make_unique<PatternBatches>(*trellises_, gold_, grouped_->blocks);
        }
        return std::make_unique<PatternEvaluator<Real>>(*trellises_, gold_, grouped_->groups,
                                                        grouped_->blocks, *batches_, n_weights);
    }

  private:
    std::shared_ptr<const Trellises> trellises_;
    Annotation gold_;
    TrellisParts parts_;
    PartSequences sequences_;
    std::optional<GroupedBlocks> grouped_;
    std::unique_ptr<PatternBatches> batches_;  // from the first question about the whole data set on
};

}  // namespace

std::unique_ptr<DataLoss> pattern_loss(std::shared_ptr<const Trellises> trellises,
                                       std::shared_ptr<const FunctionSlices> functions, Annotation gold,
                                       std::int64_t n_weights, bool single_precision, int n_threads) {
    const Design& design = *trellises->design;
    const Layout& layout = *trellises->layout;
    check_for_training(layout, design, gold, n_threads);
    if (!functions && layout.facets.empty() && design.arcs.ptr.size() == 0)
        return std::make_unique<PatternLoss>(std::move(trellises), std::move(gold), n_weights,
                                             single_precision, n_threads);
    return std::make_unique<PartLoss>(
        std::make_shared<TrellisParts>(std::move(trellises), std::move(functions), std::move(gold),
                                       n_weights),
        n_threads);
}

}  // namespace crfkit
