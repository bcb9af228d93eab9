// The Viterbi algorithm: the hyperpath of a graph (graph.hpp) with the highest score.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/interruption.hpp"
#include "hyperpaths/graph.hpp"

namespace crfkit {

// Memory of viterbi, reused from call to call.
struct ViterbiWorkspace {
    std::vector<double> best;        // [1 + nodes]
    std::vector<std::int64_t> open;  // nodes whose edge is not visited yet
};

// Viterbi:  best(v) = max_{e into v} (score e + best(left e) + best(right e)),  best(no tail) = 0.
//
// Calls visit(node, number of the edge) along the best hyperpath, heads before tails, left before right;
// among equals it is the one whose edges come first, from the goal on. Returns its score; −inf, and no visit,
// when there is no hyperpath. The scores alone are kept: the edges that they came by are found again along
// the one best hyperpath, where the same sum gives the same bits.
template <HyperpathGraph Graph, class Visit>
double viterbi(const Graph& graph, ViterbiWorkspace& workspace, const Visit& visit) {
    constexpr double kAbsent = -std::numeric_limits<double>::infinity();
    const std::int64_t n = graph.n_nodes();
    workspace.best.resize(static_cast<std::size_t>(n) + 1);
    workspace.best[0] = 0;
    double* const best = workspace.best.data() + 1;
    const auto total = [&](const auto& edges, std::int64_t k) {
        return edges.score(k) + best[edges.left(k)] + best[edges.right(k)];
    };
    Pace pace;
    for (std::int64_t node = 0; node < n; ++node) {
        const auto edges = graph.into(node);
        pace.work(4 * edges.n);
        double highest = kAbsent;
        for (std::int64_t k = 0; k < edges.n; ++k) {
            const double score = total(edges, k);
            highest = score > highest ? score : highest;
        }
        best[node] = highest;
    }
    if (best[n - 1] == kAbsent) return kAbsent;
    workspace.open.assign(1, n - 1);
    while (!workspace.open.empty()) {
        const std::int64_t node = workspace.open.back();
        workspace.open.pop_back();
        const auto edges = graph.into(node);
        std::int64_t k = 0;
        while (total(edges, k) < best[node]) ++k;
        visit(node, static_cast<std::int64_t>(edges.number(k)));
        if (edges.right(k) >= 0) workspace.open.push_back(edges.right(k));
        if (edges.left(k) >= 0) workspace.open.push_back(edges.left(k));
    }
    return best[n - 1];
}

}  // namespace crfkit
