#include "graphs/spanning_forests.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace crfkit {

namespace {

std::int64_t root_of(std::vector<std::int64_t>& parent, std::int64_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
}

}  // namespace

SpanningForests::SpanningForests(const FactorGraph& graph, std::int64_t n_least)
    : appearance(static_cast<std::size_t>(graph.n_tables())) {
    std::vector<std::int64_t> tables, parent(static_cast<std::size_t>(graph.n_variables())), roots;
    for (std::int64_t f = 0; f < graph.n_tables(); ++f)
        if (graph.scope(f).size() > 1) tables.push_back(f);
    std::vector<std::int64_t> times(static_cast<std::size_t>(graph.n_tables()));
    std::mt19937_64 random(1);  // among equals, so that forests differ
    std::int64_t n_missing = static_cast<std::int64_t>(tables.size());
    while (n_missing > 0 || static_cast<std::int64_t>(forests.size()) < n_least) {
        for (std::size_t i = tables.size(); i > 1; --i) std::swap(tables[i - 1], tables[random() % i]);
        std::stable_sort(tables.begin(), tables.end(),
                         [&](std::int64_t a, std::int64_t b) { return times[a] < times[b]; });
        std::iota(parent.begin(), parent.end(), 0);
        std::vector<std::int64_t>& forest = forests.emplace_back();
        for (const std::int64_t f : tables) {
            roots.clear();
            for (const std::int32_t v : graph.scope(f)) roots.push_back(root_of(parent, v));
            std::sort(roots.begin(), roots.end());
            if (std::adjacent_find(roots.begin(), roots.end()) != roots.end()) continue;
            for (const std::int64_t root : roots) parent[root] = roots[0];
            forest.push_back(f);
            n_missing -= times[f]++ == 0;
        }
    }
    for (std::int64_t f = 0; f < graph.n_tables(); ++f)
        appearance[f] = graph.scope(f).size() > 1 ? static_cast<double>(times[f]) / forests.size() : 1.0;
}

}  // namespace crfkit
