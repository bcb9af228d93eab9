#include "patterns/pattern_loss.hpp"

#include <stdexcept>

namespace crfkit {

PatternLoss::PatternLoss(std::shared_ptr<const Trellises> trellises, Annotation gold, std::int64_t weights,
                         bool single_precision, int threads)
    : TwoPrecisions(weights, trellises->design->n_sequences(), single_precision, threads),
      trellises_(std::move(trellises)),
      gold_(std::move(gold)) {
    const Design& design = *trellises_->design;
    const Layout& layout = *trellises_->layout;
    if (!design.is_split()) throw std::invalid_argument("the design was not made for training with patterns");
    if (design.arcs.ptr.size() > 0) throw std::invalid_argument("features of arcs do not go with patterns");
    if (trellises_->first_weight < layout.n_weights() ||
        trellises_->first_weight + trellises_->matcher->n_weights > n_weights)
        throw std::invalid_argument("the weights of the patterns must follow those of the layout");
    check_for_training(layout, design, gold_, n_threads);
}

const SequenceSource& PatternLoss::sequences() {
    throw std::invalid_argument("patterns have no steps along single sequences yet");
}

std::unique_ptr<Mistakes> PatternLoss::mistakes(const double*) {
    throw std::invalid_argument("patterns have no steps after mistakes yet");
}

}  // namespace crfkit
