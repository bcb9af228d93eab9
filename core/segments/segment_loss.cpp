#include "segments/segment_loss.hpp"

#include <utility>
#include <vector>

#include "segments/segment_evaluator.hpp"
#include "segments/segment_parts.hpp"
#include "training/part_loss.hpp"

namespace crfkit {
namespace {

// Value and gradient by kernels, the rest by the path engine.
class SegmentLoss final : public TwoPrecisions<SegmentLoss> {
  public:
    SegmentLoss(std::shared_ptr<const SegmentData> data, Annotation gold,
                std::shared_ptr<const SegmentParts> parts, bool single_precision, int threads)
        : TwoPrecisions(parts->n_weights, parts->n_sequences(), single_precision, threads),
          data_(std::move(data)),
          gold_(std::move(gold)),
          arcs_(*data_->layout),
          source_(std::move(parts)),
          parts_(source_, threads) {}

    template <class Real>
    std::unique_ptr<DataEvaluator> open() {
        if (!grouped_) grouped_.emplace(*data_->layout, *data_->design, block_use(), n_threads);
        return std::make_unique<SegmentEvaluator<Real>>(*data_, gold_, arcs_, grouped_->groups,
                                                        grouped_->blocks, parts_, *source_);
    }
    const SequenceSource& sequences() override { return parts_.sequences(); }
    std::unique_ptr<Mistakes> mistakes(const double* w) override { return parts_.mistakes(w); }

  private:
    std::shared_ptr<const SegmentData> data_;
    Annotation gold_;
    ArcModel arcs_;
    std::shared_ptr<const SegmentParts> source_;
    PartLoss parts_;
    std::optional<GroupedBlocks> grouped_;  // from the first question about the whole data set on
};

}  // namespace

std::unique_ptr<DataLoss> segment_loss(std::shared_ptr<const SegmentData> data, Annotation gold,
                                       bool single_precision, int n_threads) {
    auto parts = std::make_shared<const SegmentParts>(data, gold, n_threads);
    // Features of transitions have weights of their own at each boundary, and facets share those of features,
    // which the kernels do not know; a design with facets is not split. Nor do they know feature functions.
    if (data->functions || !data->design->is_split() || data->design->arcs.ptr.size() > 0)
        return std::make_unique<PartLoss>(std::move(parts), n_threads);
    return std::make_unique<SegmentLoss>(std::move(data), std::move(gold), std::move(parts), single_precision,
                                         n_threads);
}

}  // namespace crfkit
