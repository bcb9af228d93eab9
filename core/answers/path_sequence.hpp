// The questions on one sequence whose label sequences are the paths of a graph: by the path engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "answers/scored_sequences.hpp"
#include "chain/log_chain.hpp"
#include "paths/engine.hpp"
#include "paths/label_sequences.hpp"
#include "paths/spans.hpp"

namespace crfkit {

// After engine.marginals(graph), which returned log_z.
template <LabelGraph Graph>
ExplainedLabels explain_labels(const Graph& graph, PathEngine& engine, double log_z, std::int64_t i,
                               std::int32_t label, std::int32_t against, std::int32_t n_labels) {
    std::vector<double> probs(static_cast<std::size_t>(n_labels), 0.0);
    const auto level = graph.level(i);
    for (std::int64_t node = level.node_base + level.outer; node < level.node_base + level.last; ++node)
        probs[graph.label(i, node)] += engine.node_probs[node];
    choose_labels(probs.data(), n_labels, label, against);
    return {{label, against},
            {label_context(graph, engine, log_z, i, label), label_context(graph, engine, log_z, i, against)}};
}

// Reader, the class that derives from this, has graph(sums): the loaded sequence with its scores, a
// LabelGraph; with `sums` it also has the weights that sums over paths need.
template <class Reader>
class PathSequence : public ScoredSequence {
  public:
    explicit PathSequence(std::int32_t n_labels) : n_labels_(n_labels) {}

    void decode(std::int32_t* labels) final {
        require_possible(crfkit::decode(self().graph(false), best_, labels));
    }
    // P(y_t = b): the nodes of level t whose label is b.
    void marginals(double* probs) final {
        const auto graph = self().graph(true);
        require_possible(engine_.marginals(graph));
        for (std::int64_t t = 0; t + 1 < graph.n_levels(); ++t) {
            const auto level = graph.level(t);
            for (std::int64_t node = level.node_base + level.outer; node < level.node_base + level.last;
                 ++node)
                probs[t * n_labels_ + graph.label(t, node)] += engine_.node_probs[node];
        }
    }
    double log_partition() final { return engine_.log_partition(self().graph(true)); }
    std::vector<ScoredLabels> k_best(std::int64_t k) final { return crfkit::k_best(self().graph(false), k); }
    void sample(std::int64_t n, const double* uniforms, std::int32_t* labels) final {
        const auto graph = self().graph(true);
        require_possible(engine_.log_partition(graph));
        crfkit::sample(graph, engine_, n, uniforms, labels);
    }
    void spans(const SpanLabels& labels, double threshold, std::vector<ScoredSpan>& found) final {
        with_spans(labels, [&](auto& spans) { spans.find(threshold, found); });
    }
    void span_probabilities(const SpanLabels& labels, std::span<ScoredSpan> given) final {
        with_spans(labels, [&](auto& spans) { spans.probabilities(given); });
    }
    double n_spans(const SpanLabels& labels) final {
        double number = 0;
        with_spans(labels, [&](auto& spans) { number = spans.expected_number(); });
        return number;
    }
    ExplainedLabels explain(std::int64_t i, std::int32_t label, std::int32_t against) final {
        const auto graph = self().graph(true);
        const double log_z = engine_.marginals(graph);
        require_possible(log_z);
        return explain_labels(graph, engine_, log_z, i, label, against, n_labels_);
    }
    WindowContext explain_window(std::int64_t first, std::int64_t size) final {
        const auto graph = self().graph(true);
        const double log_z = engine_.marginals(graph);
        if (log_z == kAbsent) return {};
        return window_context(graph, engine_, log_z, first, size, n_labels_);
    }

  private:
    template <class Function>
    void with_spans(const SpanLabels& labels, const Function& function) {
        const auto graph = self().graph(true);
        require_possible(engine_.marginals(graph));
        PathSpans spans(graph, engine_, labels);
        function(spans);
    }
    Reader& self() { return static_cast<Reader&>(*this); }

    const std::int32_t n_labels_;
    PathEngine engine_;
    std::vector<double> best_;  // for Viterbi
};

}  // namespace crfkit
