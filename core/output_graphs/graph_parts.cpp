#include "output_graphs/graph_parts.hpp"

#include <stdexcept>
#include <string>

#include "base/lists.hpp"
#include "base/threads.hpp"
#include "training/chain_factors.hpp"
#include "training/part_loss.hpp"

namespace crfkit {

class GraphParts::Reader final : public PartReader {
  public:
    // Without scores it reads which paths there are.
    Reader(const GraphParts& source, bool scored)
        : data_(*source.data_),
          gold_(source.gold_ ? &*source.gold_ : nullptr),
          bigrams_(source.model_.bigrams),
          labels_(data_.layout->n_labels),
          transitions_(bigrams_.n_arcs()),
          own_(source.n_weights - data_.first_weight) {
        if (scored && data_.functions)
            chain_ = std::make_unique<FunctionFactors>(*data_.functions, bigrams_, source.n_weights);
        else if (scored)
            chain_ = std::make_unique<DesignFactors>(*data_.layout, *data_.design, source.model_);
    }

    void load(std::int64_t n, Parts& parts) override {
        const OutputGraph& graph = *data_.graphs[data_.graph_of[n]];
        const std::int64_t T = graph.n_positions();
        std::int64_t first = 0;  // node of the position at hand
        if (chain_) chain_->load(n);
        parts.clear();
        transitions_.clear();
        own_.clear();
        nodes_.assign(graph.labels.size(), -1);
        for (std::int64_t t = 0; t < T; ++t) {
            const std::int64_t position = data_.design->sequence_ptr[n] + t;
            open_labels(position, t == 0, t + 1 == T);
            labels_.clear();
            if (chain_ && chain_->by_position()) transitions_.clear();
            parts.begin_level();
            first = parts.n_nodes();
            for (std::int64_t j = graph.level_ptr[t]; j < graph.level_ptr[t + 1]; ++j) {
                const std::int32_t b = graph.labels[j];
                if (!open_[b]) continue;
                nodes_[j] = parts.add_node(b, !gold_ || gold_->possible(position, b));
                if (chain_) parts.score_node(labels_.of(b, parts, [&] { chain_->add_label(t, b, parts); }));
                for (std::int64_t e = graph.in_ptr[j]; e < graph.in_ptr[j + 1]; ++e)
                    add_arc(graph, t, e, b, parts);
            }
        }
        parts.finish(first, parts.n_nodes());
    }

  private:
    // Which labels may be at a position.
    void open_labels(std::int64_t position, bool comes_first, bool comes_last) {
        const std::int32_t L = data_.layout->n_labels;
        open_.assign(static_cast<std::size_t>(L), 1);
        data_.design->allowed.forbidden(position, L, [&](std::int32_t b) { open_[b] = 0; });
        for (std::int32_t b = 0; b < L; ++b)
            if ((comes_first && !bigrams_.can_start[b]) || (comes_last && !bigrams_.can_end[b])) open_[b] = 0;
    }
    void add_arc(const OutputGraph& graph, std::int64_t t, std::int64_t e, std::int32_t b, Parts& parts) {
        const std::int64_t source = graph.sources[e], from = t == 0 ? 0 : nodes_[source];
        const std::int32_t k = t == 0 ? -1 : bigrams_.find(graph.labels[source], b);
        if (from < 0 || (t > 0 && k < 0 && !bigrams_.soft)) return;  // it does not exist
        parts.add_arc(from);
        if (!chain_) return;
        if (k >= 0) parts.score_arc(transitions_.of(k, parts, [&] { chain_->add_arc(t, k, parts); }));
        for (std::int64_t i = graph.weight_ptr[e]; i < graph.weight_ptr[e + 1]; ++i) {
            const std::int32_t weight = graph.weights[i];
            parts.score_arc(
                own_.of(weight, parts, [&] { parts.add_feature(data_.first_weight + weight, 1); }));
        }
    }

    const GraphData& data_;
    const Annotation* gold_;
    const Bigrams& bigrams_;
    std::unique_ptr<ChainFactors> chain_;  // null: nothing is scored
    LazyFactors labels_, transitions_, own_;
    std::vector<std::int64_t> nodes_;  // [S] the node of each state, −1: none
    std::vector<std::uint8_t> open_;   // [L]
};

GraphParts::GraphParts(std::shared_ptr<const GraphData> data, std::optional<Annotation> gold,
                       std::int64_t weights, int n_threads)
    : PartSource(weights,
                 gold ? gold->weights
                      : std::vector<double>(static_cast<std::size_t>(data->design->n_sequences()), 1.0)),
      data_(std::move(data)),
      gold_(std::move(gold)),
      model_(*data_->layout) {
    const Design& design = *data_->design;
    design.check_layout(*data_->layout);
    if (gold_) check_annotation(*data_->layout, design, *gold_);
    const auto n = static_cast<std::size_t>(design.n_sequences());
    if (data_->graph_of.size() != n || PartSource::weights.size() != n)
        throw std::invalid_argument("expected one graph and one weight for each sequence");
    if (data_->first_weight < data_->layout->n_weights() || weights < data_->first_weight)
        throw std::invalid_argument("the weights of the structure must follow all others");
    for (const auto& graph : data_->graphs) {
        if (!graph) throw std::invalid_argument("a graph is missing");
        graph->check(data_->layout->n_labels, weights - data_->first_weight);
    }
    check_range(data_->graph_of, 0, static_cast<std::int64_t>(data_->graphs.size()), "graph_of");
    for (std::size_t i = 0; i < n; ++i)
        if (data_->graphs[data_->graph_of[i]]->n_positions() !=
            design.sequence_ptr[i + 1] - design.sequence_ptr[i])
            throw std::invalid_argument("sequence " + std::to_string(i) + " has the graph of another length");
    check_possible(n_threads);
}

void GraphParts::check_possible(int n_threads) const {
    parallel_for(n_sequences(), n_threads, [&](std::int64_t n, int) {
        Parts parts;
        AllowedParts allowed;
        Reader(*this, false).load(n, parts);
        allowed.find(parts);
        if (!allowed.possible())
            throw std::invalid_argument("sequence " + std::to_string(n) +
                                        ": the structure has no label sequence that is allowed" +
                                        (gold_ ? " and agrees with its labels" : ""));
    });
}

std::unique_ptr<PartReader> GraphParts::open() const { return std::make_unique<Reader>(*this, true); }

}  // namespace crfkit
