#include "segments/word_lattice_parts.hpp"

#include <stdexcept>
#include <utility>

#include "base/lists.hpp"
#include "training/chain_factors.hpp"

namespace crfkit {

class WordLatticeParts::Reader final : public PartReader {
  public:
    explicit Reader(const WordLatticeParts& source)
        : data_(*source.data_),
          gold_(source.gold_ ? &*source.gold_ : nullptr),
          features_(*data_.layout, *data_.design, source.model_),
          transitions_(data_.transitions.size()),
          nodes_(data_.arcs.labels.size()) {}

    void load(std::int64_t n, Parts& parts) override {
        const std::int64_t first = data_.design->sequence_ptr[n], n_steps = data_.n_steps(n);
        const std::int32_t boundary = data_.transitions.boundary();
        features_.load(n);
        parts.clear();
        transitions_.clear();
        ended_.assign(1, {0, boundary});  // START
        for (std::int64_t t = 0; t < n_steps; ++t) {
            parts.begin_level();
            if (t > 0) add_ended(n, t, parts);
            for (const std::int64_t a : data_.leaving(n, t)) {
                nodes_[a] = parts.add_node(static_cast<std::int32_t>(a - first),
                                           !gold_ || gold_->labels[a] != kOffPath);
                if (data_.arcs.outcomes[a] >= 0) {
                    parts.score_node(parts.add_factor());
                    features_.add_label(a - first, data_.arcs.outcomes[a], parts);
                }
                for (const auto& [node, label] : ended_) add_arc(node, label, data_.arcs.labels[a], parts);
            }
        }
        parts.begin_level();
        parts.add_node(-1);  // END
        if (n_steps == 0)
            parts.add_arc(0);
        else
            for (const std::int64_t a : data_.entering(n, n_steps - 1))
                add_arc(nodes_[a], data_.arcs.labels[a], boundary, parts);
        parts.finish();
    }

  private:
    struct Ended {
        std::int64_t node;
        std::int32_t label;
    };

    // E(t, c) for the labels c of the arcs that end at boundary t.
    void add_ended(std::int64_t n, std::int64_t t, Parts& parts) {
        ended_.clear();
        for (const std::int64_t a : data_.entering(n, t - 1)) {  // by label
            const std::int32_t label = data_.arcs.labels[a];
            if (ended_.empty() || ended_.back().label != label)
                ended_.push_back({parts.add_node(-1, true, true), label});
            parts.add_arc(nodes_[a], true, true);
        }
    }
    // The step from a label to the next one, into the newest node.
    void add_arc(std::int64_t from, std::int32_t before, std::int32_t after, Parts& parts) {
        parts.add_arc(from);
        const WordTransitions& all = data_.transitions;
        const std::int64_t k = all.find(before, after);
        if (k < 0 || all.weight_ptr[k] == all.weight_ptr[k + 1]) return;
        parts.score_arc(transitions_.of(static_cast<std::int32_t>(k), parts, [&] {
            for (std::int64_t i = all.weight_ptr[k]; i < all.weight_ptr[k + 1]; ++i)
                parts.add_feature(data_.layout->n_weights() + all.weights[i],
                                  all.values.empty() ? 1 : all.values[i]);
        }));
    }

    const WordLattices& data_;
    const Annotation* gold_;
    DesignFactors features_;
    LazyFactors transitions_;
    std::vector<std::int64_t> nodes_;  // [T] the node of each arc
    std::vector<Ended> ended_;         // of the boundary at hand
};

WordLatticeParts::WordLatticeParts(std::shared_ptr<const WordLattices> data, std::optional<Annotation> gold,
                                   std::int64_t weights)
    : PartSource(weights, gold ? gold->weights
                               : std::vector<double>(static_cast<std::size_t>(data->n_sequences()), 1.0)),
      data_(std::move(data)),
      gold_(std::move(gold)),
      model_(*data_->layout) {
    if (gold_) data_->check_annotation(*gold_);
    if (weights < data_->layout->n_weights())
        throw std::invalid_argument("the weights of the structure must follow all others");
    check_range(data_->transitions.weights, 0, weights - data_->layout->n_weights(), "weights");
}

std::unique_ptr<PartReader> WordLatticeParts::open() const { return std::make_unique<Reader>(*this); }

}  // namespace crfkit
