#include "paths/array_graph.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

namespace crfkit {

ArrayGraph::ArrayGraph(std::int64_t n_nodes, std::span<const std::int64_t> sources,
                       std::span<const std::int64_t> targets)
    : node_order(static_cast<std::size_t>(std::max<std::int64_t>(n_nodes, 0))) {
    if (n_nodes < 2)
        throw std::invalid_argument("a graph has a START and an END, got " + std::to_string(n_nodes) +
                                    " nodes");
    if (sources.size() != targets.size())
        throw std::invalid_argument("there are " + std::to_string(sources.size()) + " sources and " +
                                    std::to_string(targets.size()) + " targets of arcs, expected as many");
    for (std::size_t e = 0; e < sources.size(); ++e)
        if (sources[e] < 0 || sources[e] >= targets[e] || targets[e] >= n_nodes)
            throw std::invalid_argument(
                "arc " + std::to_string(e) + " leads from node " + std::to_string(sources[e]) + " to node " +
                std::to_string(targets[e]) + ", expected 0 ≤ source < target < n_nodes");
    sort_arcs(sources, targets, sort_nodes(sources, targets));
}

// level(j) = 1 + max of the levels that arcs into j come from. Returns the place of each given node.
std::vector<std::int64_t> ArrayGraph::sort_nodes(std::span<const std::int64_t> sources,
                                                 std::span<const std::int64_t> targets) {
    const std::size_t n = node_order.size();
    std::vector<std::int64_t> by_source(sources.size()), given_level(n, 0), place(n);
    given_level[0] = -1;
    std::iota(by_source.begin(), by_source.end(), 0);
    std::stable_sort(by_source.begin(), by_source.end(),
                     [&](std::int64_t a, std::int64_t b) { return sources[a] < sources[b]; });
    for (const std::int64_t e : by_source)  // the level of the source is final: all arcs into it came before
        given_level[targets[e]] = std::max(given_level[targets[e]], given_level[sources[e]] + 1);
    given_level[n - 1] = 1 + *std::max_element(given_level.begin(), given_level.end() - 1);
    std::iota(node_order.begin(), node_order.end(), 0);
    std::stable_sort(node_order.begin(), node_order.end(),
                     [&](std::int64_t a, std::int64_t b) { return given_level[a] < given_level[b]; });
    for (std::size_t j = 0; j < n; ++j) {
        place[node_order[j]] = static_cast<std::int64_t>(j);
        level_of.push_back(given_level[node_order[j]]);
        if (j > 0 && level_of[j] != level_of[j - 1]) level_ptr.push_back(static_cast<std::int64_t>(j));
    }
    level_ptr.push_back(static_cast<std::int64_t>(n));
    return place;
}

void ArrayGraph::sort_arcs(std::span<const std::int64_t> sources, std::span<const std::int64_t> targets,
                           const std::vector<std::int64_t>& place) {
    arc_order.resize(sources.size());
    std::iota(arc_order.begin(), arc_order.end(), 0);
    std::stable_sort(arc_order.begin(), arc_order.end(), [&](std::int64_t a, std::int64_t b) {
        return std::pair(place[targets[a]], place[sources[a]]) <
               std::pair(place[targets[b]], place[sources[b]]);
    });
    in_ptr.assign(node_order.size() + 1, 0);
    for (const std::int64_t e : arc_order) {
        source.push_back(place[sources[e]]);
        ++in_ptr[place[targets[e]] + 1];
    }
    std::partial_sum(in_ptr.begin(), in_ptr.end(), in_ptr.begin());
    find_oldest();
}

// The lowest source of all arcs into later levels, if it lies before the level.
void PathShape::find_oldest() {
    oldest.resize(static_cast<std::size_t>(n_levels()));
    std::int64_t lowest = n_nodes();
    for (std::int64_t t = n_levels() - 1; t >= 0; --t) {
        oldest[t] = std::min(lowest, level_ptr[t]);
        for (std::int64_t e = in_ptr[level_ptr[t]]; e < in_ptr[level_ptr[t + 1]]; ++e)
            lowest = std::min(lowest, source[e]);
    }
}

ScoredArrayGraph::ScoredArrayGraph(const ArrayGraph& graph, std::span<const double> scores)
    : shape_(graph), order_(&graph.arc_order), own_arcs_(scores.size()), arcs_(own_arcs_) {
    if (static_cast<std::int64_t>(scores.size()) != graph.n_arcs())
        throw std::invalid_argument("there are " + std::to_string(scores.size()) + " scores, expected " +
                                    std::to_string(graph.n_arcs()) + ", one for each arc");
    for (std::size_t e = 0; e < scores.size(); ++e) own_arcs_[e] = scores[graph.arc_order[e]];
    exponentiate();
}

ScoredArrayGraph::ScoredArrayGraph(const PathShape& shape, std::span<const double> arcs,
                                   std::span<const double> nodes)
    : shape_(shape), arcs_(arcs), nodes_(nodes) {
    exponentiate();
}

ScoredArrayGraph::ScoredArrayGraph(const PathShape& shape, std::vector<double>&& arcs,
                                   std::vector<double>&& nodes)
    : shape_(shape),
      own_arcs_(std::move(arcs)),
      own_nodes_(std::move(nodes)),
      arcs_(own_arcs_),
      nodes_(own_nodes_) {
    exponentiate();
}

// weight = exp(score − maximum of the level); 1 for silent arcs, so that each path subtracts the maximum
// once.
void ScoredArrayGraph::exponentiate() {
    const auto silent = [&](std::int64_t e) { return !shape_.silent.empty() && shape_.silent[e]; };
    weights_.resize(arcs_.size());
    maxima_.reserve(static_cast<std::size_t>(n_levels()));
    for (std::int64_t t = 0; t < n_levels(); ++t) {
        double maximum = kAbsent;
        const std::int64_t first = shape_.in_ptr[shape_.level_ptr[t]];
        const std::int64_t last = shape_.in_ptr[shape_.level_ptr[t + 1]];
        for (std::int64_t e = first; e < last; ++e)
            if (!silent(e)) maximum = std::max(maximum, arcs_[e]);
        if (maximum == kAbsent) maximum = 0;
        for (std::int64_t e = first; e < last; ++e)
            weights_[e] = silent(e) ? 1.0 : std::exp(arcs_[e] - maximum);
        maxima_.push_back(maximum);
    }
}

}  // namespace crfkit
