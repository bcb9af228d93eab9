#include "losses/chain_loss.hpp"

#include <optional>
#include <vector>

#include "chain/evaluator.hpp"
#include "chain/mistakes.hpp"
#include "chain/sequence_loss.hpp"
#include "data/blocks.hpp"
#include "lattice/batch_evaluator.hpp"
#include "lattice/evaluator.hpp"
#include "lattice/lattice_parts.hpp"
#include "lattice/mistakes.hpp"
#include "lattice/sequence_loss.hpp"
#include "training/part_loss.hpp"

namespace crfkit {
namespace {

// What the three backends share: the data, and the gold labels.
template <class Loss>
class ChainLoss : public TwoPrecisions<Loss> {
  public:
    ChainLoss(std::shared_ptr<const Layout> layout, std::shared_ptr<Design> design, Annotation gold,
              bool single_precision, int threads)
        : TwoPrecisions<Loss>(layout->n_weights(), design->n_sequences(), single_precision, threads),
          layout_(std::move(layout)),
          design_(std::move(design)),
          gold_(std::move(gold)),
          arcs_(*layout_) {}

  protected:
    std::shared_ptr<const Layout> layout_;
    std::shared_ptr<Design> design_;
    Annotation gold_;
    ArcModel arcs_;
    std::unique_ptr<SequenceSource> sequences_;  // from the first question about single sequences on
};

// All labels at every position, and all transitions: whole rows of scores.
class DenseLoss final : public ChainLoss<DenseLoss> {
  public:
    using ChainLoss::ChainLoss;

    template <class Real>
    std::unique_ptr<DataEvaluator> open() {
        if (!grouped_) grouped_.emplace(*layout_, *design_, block_use(), n_threads);
        return std::make_unique<Evaluator<Real>>(*layout_, *design_, gold_, *grouped_);
    }
    const SequenceSource& sequences() override {
        if (!sequences_) sequences_ = std::make_unique<ChainSequences>(*layout_, *design_, gold_, n_threads);
        return *sequences_;
    }
    std::unique_ptr<Mistakes> mistakes(const double* w) override {
        return row_mistakes(*layout_, *design_, gold_, arcs_, w, single_precision_);
    }
    bool move_to(ScratchMemory& memory) override {
        design_->move_to(memory);
        if (grouped_) grouped_->move_to(memory);
        if (sequences_) static_cast<ChainSequences&>(*sequences_).move_to(memory);
        return memory.store();
    }

  private:
    std::optional<GroupedBlocks> grouped_;  // from the first question about the whole data set on
};

// Few candidate labels at a position, or labels with facets: each sequence is a lattice.
class LatticeLoss final : public ChainLoss<LatticeLoss> {
  public:
    LatticeLoss(std::shared_ptr<const Layout> layout, std::shared_ptr<Design> design, Annotation gold,
                bool single_precision, int threads)
        : ChainLoss(std::move(layout), std::move(design), std::move(gold), single_precision, threads),
          data_(*layout_, arcs_, *design_, n_threads) {}

    template <class Real>
    std::unique_ptr<DataEvaluator> open() {
        if (blocks_.empty()) blocks_ = cut_into_blocks(*layout_, *design_, data_, block_use(), n_threads);
        return std::make_unique<LatticeEvaluator<Real>>(*layout_, *design_, gold_, data_, blocks_);
    }
    const SequenceSource& sequences() override {
        if (!sequences_) sequences_ = std::make_unique<LatticeSequences>(*layout_, *design_, gold_, data_);
        return *sequences_;
    }
    std::unique_ptr<Mistakes> mistakes(const double* w) override {
        return lattice_mistakes(*layout_, *design_, gold_, arcs_, w, n_threads);
    }

  private:
    LatticeData data_;
    std::vector<LatticeBlock> blocks_;
};

// Many labels, all possible, but few transitions: many sequences at once, one per lane of a vector.
class BatchedLoss final : public ChainLoss<BatchedLoss> {
  public:
    using ChainLoss::ChainLoss;

    template <class Real>
    std::unique_ptr<DataEvaluator> open() {
        if (batches_.empty()) batches_ = cut_into_batches(*layout_, *design_, block_use(), n_threads);
        return std::make_unique<BatchEvaluator<Real>>(*layout_, *design_, gold_, arcs_, batches_);
    }
    // A single sequence fills no lanes. Where transitions are forbidden, its lattice has few arcs; where the
    // others merely have no weight, rows of all labels are faster.
    const SequenceSource& sequences() override {
        if (!sequences_ && layout_->bigrams->soft) {
            rows_.emplace(design_->in_rows(n_threads));
            sequences_ = std::make_unique<ChainSequences>(*layout_, *rows_, gold_, n_threads);
        } else if (!sequences_) {
            data_.emplace(*layout_, arcs_, *design_, n_threads);
            parts_.emplace(*layout_, *design_, &gold_, *data_);
            sequences_ = std::make_unique<PartSequences>(*parts_);
        }
        return *sequences_;
    }
    std::unique_ptr<Mistakes> mistakes(const double* w) override {
        return lattice_mistakes(*layout_, *design_, gold_, arcs_, w, n_threads);
    }

  private:
    std::vector<BatchBlock> batches_;
    std::optional<Design> rows_;  // these three for single sequences
    std::optional<LatticeData> data_;
    std::optional<LatticeParts> parts_;
};

// Facets beside dense blocks or features of transitions: lattices without a faster backend.
struct FacetLattices {
    FacetLattices(std::shared_ptr<const Layout> model, std::shared_ptr<const Design> sequences,
                  Annotation annotation, int n_threads)
        : layout(std::move(model)),
          design(std::move(sequences)),
          gold(std::move(annotation)),
          arcs(*layout),
          data(*layout, arcs, *design, n_threads),
          parts(*layout, *design, &gold, data) {}

    std::shared_ptr<const Layout> layout;
    std::shared_ptr<const Design> design;
    Annotation gold;
    ArcModel arcs;
    LatticeData data;
    LatticeParts parts;
};

}  // namespace

std::unique_ptr<DataLoss> chain_loss(std::shared_ptr<const Layout> layout, std::shared_ptr<Design> design,
                                     Annotation gold, bool single_precision, int n_threads) {
    check_for_training(*layout, *design, gold, n_threads);
    if (design->as_lattices && !design->is_plain()) {
        const auto lattices = std::make_shared<const FacetLattices>(std::move(layout), std::move(design),
                                                                    std::move(gold), n_threads);
        return std::make_unique<PartLoss>(std::shared_ptr<const PartSource>(lattices, &lattices->parts),
                                          n_threads);
    }
    const auto made = [&]<class Loss>(std::type_identity<Loss>) -> std::unique_ptr<DataLoss> {
        return std::make_unique<Loss>(std::move(layout), std::move(design), std::move(gold), single_precision,
                                      n_threads);
    };
    if (design->as_lattices) return made(std::type_identity<LatticeLoss>());
    if (design->as_batches) return made(std::type_identity<BatchedLoss>());
    return made(std::type_identity<DenseLoss>());
}

}  // namespace crfkit
