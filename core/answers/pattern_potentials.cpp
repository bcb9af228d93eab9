#include "answers/pattern_potentials.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>

#include "answers/path_sequence.hpp"
#include "answers/scored_parts.hpp"
#include "base/forks.hpp"
#include "data/arc_model.hpp"
#include "data/scorer.hpp"
#include "patterns/trellis_graph.hpp"
#include "patterns/trellis_parts.hpp"

namespace crfkit {

// The data set at the weights.
class PatternPotentials::ScoredTrellises : public ScoredSequences {
  public:
    ScoredTrellises(const Layout& layout, const Trellises& trellises, const WeightTables<double>& tables,
                    const double* w)
        : ScoredSequences(layout, *trellises.design),
          trellises(trellises),
          stride(tables.stride),
          scorer(layout, *trellises.design, tables) {
        steps.score_weights(trellises, ArcModel(layout), w);
    }
    // The scores of the steps with their exponentials, which only sums need.
    const StepScores& exponentiated() const {
        once_.run([&] { steps.exponentiate(trellises.table); });
        return steps;
    }

    const Trellises& trellises;
    const std::int32_t stride;
    const Scorer<double> scorer;
    mutable StepScores steps;

  protected:
    std::unique_ptr<ScoredSequence> reader() const override;

  private:
    mutable Once once_;
};

// One sequence as the paths of its trellis.
class PatternPotentials::TrellisReader final : public PathSequence<TrellisReader> {
  public:
    explicit TrellisReader(const ScoredTrellises& data)
        : PathSequence(data.layout().n_labels),
          data_(data),
          trellises_(data.trellises),
          stride_(data.stride) {}

    void load(std::int64_t n) override {
        const Design& design = *trellises_.design;
        n_ = n;
        first_ = design.sequence_ptr[n];
        n_positions_ = design.sequence_ptr[n + 1] - first_;
        rows_.resize(n_positions_ * stride_);
        data_.scorer.score(n, rows_.data());
        close_labels(design.allowed, first_, n_positions_, n_labels(), stride_, rows_.data());
        emissions_.resize(static_cast<std::size_t>(n_positions_ * n_labels()));
        for (std::int64_t t = 0; t < n_positions_; ++t)
            std::copy_n(rows_.data() + t * stride_, n_labels(), emissions_.data() + t * n_labels());
    }
    void restrict(const Annotation& allowed) override {
        for (std::int64_t t = 0; t < n_positions_; ++t)
            allowed.forbidden(first_ + t, n_labels(), [&](std::int32_t b) {
                emissions_[t * n_labels() + b] = -std::numeric_limits<double>::infinity();
            });
    }
    TrellisGraph graph(bool sums) {
        const StepScores& steps = sums ? data_.exponentiated() : data_.steps;
        scored_.emplace(trellises_.table, trellises_.steps_of_sequence(n_), n_labels(), emissions_.data(),
                        steps, sums);
        return {*scored_, places_};
    }

  private:
    std::int32_t n_labels() const { return trellises_.matcher->n_labels; }

    const ScoredTrellises& data_;
    const Trellises& trellises_;
    std::int32_t stride_;
    std::int64_t n_ = 0, first_ = 0, n_positions_ = 0;
    Buffer<double> rows_;                  // [T, S]
    std::vector<double> emissions_;        // [T, L]
    std::optional<ScoredTrellis> scored_;  // what the graph asked for last reads
    TrellisPlaces places_;
};

std::unique_ptr<ScoredSequence> PatternPotentials::ScoredTrellises::reader() const {
    return std::make_unique<TrellisReader>(*this);
}

PatternPotentials::PatternPotentials(std::shared_ptr<const Layout> layout, std::vector<double> w,
                                     std::int64_t first_weight)
    : layout_(std::move(layout)),
      w_(std::move(w)),
      first_weight_(first_weight),
      tables_(*layout_, WeightTables<double>::kNever) {
    if (first_weight < layout_->n_weights() || first_weight > static_cast<std::int64_t>(w_.size()))
        throw std::invalid_argument("the weights of the patterns must follow those of the layout");
    if (!layout_->facets.empty()) return;
    tables_.set(w_.data(), 1);
    tables_.list_features();
}

std::unique_ptr<ScoredSequences> PatternPotentials::score(
    std::shared_ptr<const Trellises> trellises, std::shared_ptr<const FunctionSlices> functions) const {
    const Design& design = *trellises->design;
    design.check_layout(*layout_);
    if (trellises->first_weight != first_weight_ ||
        first_weight_ + trellises->matcher->n_weights > static_cast<std::int64_t>(w_.size()))
        throw std::invalid_argument("the trellises were made for other patterns than the weights");
    if (!functions && layout_->facets.empty() && design.arcs.ptr.size() == 0)
        return std::make_unique<ScoredTrellises>(*layout_, *trellises, tables_, w_.data());
    auto parts = std::make_unique<TrellisParts>(std::move(trellises), std::move(functions), std::nullopt,
                                                static_cast<std::int64_t>(w_.size()));
    return std::make_unique<ScoredParts>(*layout_, design, std::move(parts), w_);
}

}  // namespace crfkit
