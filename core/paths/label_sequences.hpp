// Paths as outputs: label sequences of graphs with one label for each position, the node of level t for
// position t; lists of arcs, the arc into level t at place t, of graphs without labels.
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
    std::vector<std::int32_t> labels;  // [T]; or [levels] arcs, −1 where a path jumps over a level
};

// How many numbers an output has.
template <PathGraph Graph>
std::int64_t output_size(const Graph& graph) {
    return LabelGraph<Graph> ? graph.n_levels() - 1 : graph.n_levels();
}

// Writes what a path does at level t into its output.
template <PathGraph Graph>
void write_output(const Graph& graph, std::int64_t t, std::int64_t node, std::int64_t arc,
                  std::int32_t* output) {
    if constexpr (LabelGraph<Graph>) {
        if (const std::int32_t label = graph.label(t, node); label >= 0) output[t] = label;
    } else {
        output[t] = graph.given_arc(arc);
    }
}

// Viterbi: the output with the highest score, and that score; −inf, and no output, when nothing is possible.
template <PathGraph Graph>
double decode(const Graph& graph, std::vector<double>& best, std::int32_t* output) {
    return viterbi(graph, best, [&](std::int64_t t, std::int64_t node, std::int64_t arc) {
        write_output(graph, t, node, arc, output);
    });
}

// After engine.log_partition(graph): n exact samples [n, size], by uniforms [n, levels − 1] in [0, 1).
template <PathGraph Graph>
void sample(const Graph& graph, PathEngine& engine, std::int64_t n, const double* uniforms,
            std::int32_t* outputs) {
    const std::int64_t size = output_size(graph);
    engine.sample(graph, n, uniforms,
                  [&](std::int64_t i, std::int64_t t, std::int64_t node, std::int64_t arc) {
                      write_output(graph, t, node, arc, outputs + i * size);
                  });
}

// The k outputs with the highest scores, best first, all distinct; fewer when fewer are possible.
template <PathGraph Graph>
std::vector<ScoredLabels> k_best(const Graph& graph, std::int64_t k) {
    std::vector<ScoredLabels> out;
    if (k < 1) return out;
    KBestPaths paths(graph);
    while (static_cast<std::int64_t>(out.size()) < k && paths.next()) {
        out.push_back({paths.score(), std::vector<std::int32_t>(output_size(graph), -1)});
        paths.each([&](std::int64_t t, std::int64_t node, std::int64_t arc) {
            write_output(graph, t, node, arc, out.back().labels.data());
        });
    }
    return out;
}

}  // namespace crfkit
