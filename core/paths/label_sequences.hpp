// Paths that are label sequences: graphs with one label for each position, the node of level t for position
// t.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "paths/engine.hpp"
#include "paths/graph.hpp"
#include "paths/k_best.hpp"
#include "paths/viterbi.hpp"

namespace crfkit {

template <class Graph>
concept LabelGraph = PathGraph<Graph> && requires(const Graph& graph, std::int64_t t, std::int64_t node) {
    { graph.label(t, node) } -> std::same_as<std::int32_t>;  // of a node of level t; −1: inner node, or END
};

struct ScoredLabels {
    double score;
    std::vector<std::int32_t> labels;  // [T]
};

// Viterbi: the labels [T] with the highest score, and that score; −inf, and no labels, when nothing is
// possible.
template <LabelGraph Graph>
double decode(const Graph& graph, std::vector<double>& best, std::int32_t* labels) {
    return viterbi(graph, best, [&](std::int64_t t, std::int64_t node, std::int64_t) {
        if (const std::int32_t label = graph.label(t, node); label >= 0) labels[t] = label;
    });
}

// After engine.log_partition(graph): n exact samples, as labels [n, T], by uniforms [n, T] in [0, 1).
template <LabelGraph Graph>
void sample(const Graph& graph, PathEngine& engine, std::int64_t n, const double* uniforms,
            std::int32_t* labels) {
    const std::int64_t T = graph.n_levels() - 1;
    engine.sample(graph, n, uniforms, [&](std::int64_t i, std::int64_t t, std::int64_t node, std::int64_t) {
        if (const std::int32_t label = graph.label(t, node); label >= 0) labels[i * T + t] = label;
    });
}

// The k label sequences with the highest scores, best first, all distinct; fewer when fewer are possible.
template <LabelGraph Graph>
std::vector<ScoredLabels> k_best(const Graph& graph, std::int64_t k) {
    std::vector<ScoredLabels> out;
    if (k < 1) return out;
    KBestPaths paths(graph);
    while (static_cast<std::int64_t>(out.size()) < k && paths.next()) {
        out.push_back({paths.score(), std::vector<std::int32_t>(graph.n_levels() - 1)});
        paths.each([&](std::int64_t t, std::int64_t node, std::int64_t) {
            if (const std::int32_t label = graph.label(t, node); label >= 0) out.back().labels[t] = label;
        });
    }
    return out;
}

}  // namespace crfkit
