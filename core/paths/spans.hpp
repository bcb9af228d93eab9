// Exact probabilities of spans, on the paths of a graph with one label for each position: by the path engine.
//
// From END to START, back(e) makes a Markov chain of the paths (engine.hpp). Let r_t(j) be the probability
// that a path has a span of type c which ends with position `last`, still holds position t, and passes node j
// of level t. With the labels a = label(src e) and b = label(j),
//
//   r_last(j)  = Σ P(e) over the arcs e that leave j to END or to a label that does not continue the span,
//
//   r_{t−1}(a) = Σ_j r_t(j) back(e) over the arcs for which b continues the span of a,
//
//   P(the span begins at t) = the same sum over all other arcs.
//
// Arcs may pass inner nodes, where labels before and after are not known together. But for one type, b
// continues a where b follows and a goes on: the part of the mass whose b follows is taken along separately,
// and at a it is known whether it goes on. All terms are sums of numbers ≥ 0. What is left of r only falls,
// so that a threshold ends it: the cost is that of the spans that are found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/interruption.hpp"
#include "paths/engine.hpp"
#include "paths/label_sequences.hpp"
#include "paths/span_labels.hpp"

namespace crfkit {

// Level t of the graph holds the nodes of position t, and no arc jumps over a level.
template <LabelGraph Graph>
class PathSpans {
  public:
    // After engine.marginals(graph). All must outlive it.
    PathSpans(const Graph& graph, PathEngine& engine, const SpanLabels& labels)
        : graph_(graph), engine_(engine), labels_(labels) {
        free_.assign(engine.node_probs.size(), 0.0);
        following_.assign(engine.node_probs.size(), 0.0);
    }

    // All spans with a probability of at least `threshold` > 0, added to `found` in any order.
    void find(double threshold, std::vector<ScoredSpan>& found) {
        for (std::int64_t last = n_positions(); last-- > 0;) {
            of_type_.assign(static_cast<std::size_t>(labels_.n_types()), 0.0);
            each_node(last, [&](std::int64_t node, std::int32_t b) {
                if (labels_.type(b) >= 0) of_type_[labels_.type(b)] += engine_.node_probs[node];
            });
            for (std::int32_t type = 0; type < labels_.n_types(); ++type)
                if (of_type_[type] >= threshold)
                    extend(last, type, 0, threshold, [&](std::int64_t start, double probability) {
                        if (probability >= threshold) found.push_back({start, last + 1, type, probability});
                    });
        }
    }

    // Fills in the probabilities of given spans.
    void probabilities(std::span<ScoredSpan> given) {
        for (ScoredSpan& span : given) {
            span.probability = 0;
            extend(span.end - 1, span.type, span.start, 0, [&](std::int64_t start, double probability) {
                if (start == span.start) span.probability = probability;
            });
        }
    }

    // The expected number of spans: of positions in a span, less those that continue the span before them.
    double expected_number() {
        double total = 0;
        for (std::int64_t t = 0; t < n_positions(); ++t) {
            each_node(t, [&](std::int64_t node, std::int32_t b) {
                if (labels_.type(b) >= 0) total += engine_.node_probs[node];
            });
            for (std::int32_t type = 0; t > 0 && type < labels_.n_types(); ++type) {
                each_node(t, [&](std::int64_t node, std::int32_t b) {
                    if (labels_.type(b) == type && labels_.follows(b))
                        following_[node] = engine_.node_probs[node];
                });
                engine_.move_back(graph_, t, following_);
                each_node(t - 1, [&](std::int64_t node, std::int32_t a) {
                    const double mass = std::exchange(following_[node], 0.0);
                    if (labels_.type(a) == type && labels_.goes_on(a)) total -= mass;
                });
            }
        }
        return std::max(total, 0.0);
    }

  private:
    std::int64_t n_positions() const { return graph_.n_levels() - 1; }

    // function(node, label) for the nodes of a level that have a label; END has the label −1.
    template <class Function>
    void each_node(std::int64_t t, const Function& function) const {
        const auto level = graph_.level(t);
        for (std::int64_t node = level.node_base + level.outer; node < level.node_base + level.last; ++node)
            function(node, graph_.label(t, node));
    }

    // report(start, P) for the spans of a type that end with position `last` and begin at `last`, last − 1,
    // …, until what is left is below the threshold, or 0, or begins before `first`.
    template <class Report>
    void extend(std::int64_t last, std::int32_t type, std::int64_t first, double threshold,
                const Report& report) {
        close(last, type);
        for (std::int64_t t = last; t >= first; --t) {
            double open = 0;
            for (const auto& [node, mass] : open_) open += mass;
            if (!(open > 0 && open >= threshold)) return;
            pace_.work(16 * graph_.level(t).n_arcs);
            report(t, begin(t, type));
        }
    }

    // open_ = r_last.
    void close(std::int64_t last, std::int32_t type) {
        open_.clear();
        each_node(last + 1, [&](std::int64_t node, std::int32_t b) {
            const bool follows = b >= 0 && labels_.type(b) == type && labels_.follows(b);
            (follows ? following_ : free_)[node] = engine_.node_probs[node];
        });
        engine_.move_back(graph_, last + 1, free_);
        engine_.move_back(graph_, last + 1, following_);
        each_node(last, [&](std::int64_t node, std::int32_t a) {
            const double free = std::exchange(free_[node], 0.0);
            const double following = std::exchange(following_[node], 0.0);
            if (labels_.type(a) == type)
                open_.emplace_back(node, free + (labels_.goes_on(a) ? 0.0 : following));
        });
    }

    // Turns open_ from r_t into r_{t−1}; returns the probability that the span begins at t.
    double begin(std::int64_t t, std::int32_t type) {
        double begun = 0;
        for (const auto& [node, mass] : open_)
            if (labels_.follows(graph_.label(t, node)))
                following_[node] = mass;
            else
                begun += mass;
        open_.clear();
        engine_.move_back(graph_, t, following_);
        if (t == 0) return begun + std::exchange(following_[graph_.start()], 0.0);
        each_node(t - 1, [&](std::int64_t node, std::int32_t a) {
            const double mass = std::exchange(following_[node], 0.0);
            if (labels_.type(a) == type && labels_.goes_on(a))
                open_.emplace_back(node, mass);
            else
                begun += mass;
        });
        return begun;
    }

    Pace pace_;
    const Graph& graph_;
    PathEngine& engine_;
    const SpanLabels& labels_;
    std::vector<double> free_, following_;               // [nodes] masses on their way, 0 between two calls
    std::vector<double> of_type_;                        // [C] P(a position is in a span of the type)
    std::vector<std::pair<std::int64_t, double>> open_;  // nodes of one level with r
};

}  // namespace crfkit
