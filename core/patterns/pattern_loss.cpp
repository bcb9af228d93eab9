#include "patterns/pattern_loss.hpp"

#include <stdexcept>

#include "data/candidates.hpp"

namespace crfkit {

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

PatternLoss::PatternLoss(std::shared_ptr<const Trellises> trellises, Annotation gold, std::int64_t weights,
                         bool single_precision, int threads)
    : TwoPrecisions(weights, trellises->design->n_sequences(), single_precision, threads),
      trellises_(std::move(trellises)),
      gold_(std::move(gold)),
      parts_(trellises_, nullptr, gold_, weights),
      sequences_(parts_) {
    if (!trellises_->design->is_split())
        throw std::invalid_argument("the design was not made for training with patterns");
}

}  // namespace crfkit
