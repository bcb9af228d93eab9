#include "patterns/trellis_parts.hpp"

#include <stdexcept>

namespace crfkit {

TrellisParts::TrellisParts(std::shared_ptr<const Trellises> trellises,
                           std::shared_ptr<const FunctionSlices> functions, std::optional<Annotation> gold,
                           std::int64_t n_weights)
    : PartSource(n_weights,
                 gold ? gold->weights
                      : std::vector<double>(static_cast<std::size_t>(trellises->n_sequences()), 1.0)),
      trellises_(std::move(trellises)),
      functions_(std::move(functions)),
      gold_(std::move(gold)),
      model_(*trellises_->layout) {
    if (trellises_->first_weight < trellises_->layout->n_weights() ||
        trellises_->first_weight + trellises_->matcher->n_weights > n_weights)
        throw std::invalid_argument("the weights of the patterns must follow all others");
}

class TrellisParts::Reader final : public PartReader {
  public:
    explicit Reader(const TrellisParts& source)
        : trellises_(*source.trellises_),
          table_(trellises_.table),
          gold_(source.gold_ ? &*source.gold_ : nullptr),
          arcs_(trellises_.bigrams.n_arcs()),
          active_(table_.n_active()) {
        if (source.functions_)
            chain_ =
                std::make_unique<FunctionFactors>(*source.functions_, trellises_.bigrams, source.n_weights);
        else
            chain_ = std::make_unique<DesignFactors>(*trellises_.layout, *trellises_.design, source.model_);
    }

    void load(std::int64_t n, Parts& parts) override {
        const auto steps = trellises_.steps_of_sequence(n);
        const auto T = static_cast<std::int64_t>(steps.size()) - 1;
        first_position_ = trellises_.design->sequence_ptr[n];
        chain_->load(n);
        parts.clear();
        arcs_.clear();
        active_.clear();
        for (std::int64_t t = 0, before = 0; t <= T; ++t) {
            const std::int64_t first = parts.n_nodes();  // the first pool
            add_step(t, table_.steps[steps[t]], t == T, before, parts);
            before = first + table_.steps[steps[t]].n_pools;
        }
        if (T < 0)
            parts.finish(0, 1);
        else
            parts.finish();
    }

  private:
    // The pools of a step and the nodes after it, with the arcs into them; node 0 of the step is node
    // `before`.
    void add_step(std::int64_t t, const Step& step, bool last, std::int64_t before, Parts& parts) {
        const std::int64_t first = parts.n_nodes();
        const auto labels = table_.labels(step.after);
        if (chain_->by_position()) arcs_.clear();
        parts.begin_level();
        std::int64_t factor = -1;
        for (std::int32_t i = step.n_before, label = -1; i < step.n_nodes(); ++i) {
            const bool pool = i < step.n_sources();
            const std::int32_t here = pool || last ? -1 : labels[i - step.n_sources()];
            parts.add_node(here, here < 0 || !gold_ || gold_->possible(first_position_ + t, here), pool);
            if (here >= 0 && here != label) {  // labels ascend
                factor = parts.add_factor();
                chain_->add_label(t, label = here, parts);
            }
            if (here >= 0) parts.score_node(factor);
            const std::int32_t* in = table_.in_ptr.data() + step.first_in + (i - step.n_before);
            for (std::int32_t e = in[0]; e < in[1]; ++e) {
                const std::int32_t source = table_.source[step.first_arc + e];
                parts.add_arc(source < step.n_before ? before + source : first + source - step.n_before, true,
                              table_.silent(step, e));
                score_arc(t, step.first_arc + e, parts);
            }
        }
    }

    void score_arc(std::int64_t t, std::int64_t e, Parts& parts) {
        if (const std::int32_t k = table_.arc[e]; k >= 0)
            parts.score_arc(arcs_.of(k, parts, [&] { chain_->add_arc(t, k, parts); }));
        if (const std::int32_t set = table_.active[e]; set >= 0)
            parts.score_arc(active_.of(set, parts, [&] {
                for (std::int64_t i = table_.active_ptr[set]; i < table_.active_ptr[set + 1]; ++i)
                    parts.add_feature(trellises_.first_weight + table_.active_weights[i],
                                      table_.active_values[i]);
            }));
    }

    const Trellises& trellises_;
    const StepTable& table_;
    const Annotation* gold_;
    std::unique_ptr<ChainFactors> chain_;
    LazyFactors arcs_, active_;  // of listed arcs, of active sets
    std::int64_t first_position_ = 0;
};

std::unique_ptr<PartReader> TrellisParts::open() const { return std::make_unique<Reader>(*this); }

}  // namespace crfkit
