#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "paths/array_graph.hpp"
#include "paths/engine.hpp"
#include "paths/k_best.hpp"
#include "paths/viterbi.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

using Scores = Array<double>;

void check_possible(double log_partition) {
    if (log_partition == kAbsent)
        throw std::invalid_argument("no path is possible: every one has an arc with score −inf");
}

// Numbers of sorted nodes or arcs in the order in which these were given.
nb::object as_given(const std::vector<double>& sorted, const std::vector<std::int64_t>& order) {
    NewArray<double> out({order.size()});
    for (std::size_t i = 0; i < order.size(); ++i) out.data()[order[i]] = sorted[i];
    return out.take();
}

nb::object levels(const ArrayGraph& graph) {
    NewArray<std::int64_t> out({graph.node_order.size()});
    for (std::size_t i = 0; i < graph.node_order.size(); ++i)
        out.data()[graph.node_order[i]] = graph.level_of[i];
    return out.take();
}

double log_partition(const ArrayGraph& graph, const Scores& scores, bool in_log_space) {
    const LockRelease release;
    return PathEngine().log_partition(ScoredArrayGraph(graph, view(scores)), in_log_space);
}

nb::tuple marginals(const ArrayGraph& graph, const Scores& scores, bool in_log_space) {
    PathEngine engine;
    {
        const LockRelease release;
        check_possible(engine.marginals(ScoredArrayGraph(graph, view(scores)), in_log_space));
    }
    return nb::make_tuple(as_given(engine.arc_probs, graph.arc_order),
                          as_given(engine.node_probs, graph.node_order));
}

nb::object hessian_vector(const ArrayGraph& graph, const Scores& scores, const Scores& direction,
                          bool in_log_space) {
    PathEngine engine;
    {
        const LockRelease release;
        const ScoredArrayGraph scored(graph, view(scores));
        check_possible(engine.marginals(scored, in_log_space));
        engine.hessian_vector(scored, ScoredArrayGraph(graph, view(direction)));
    }
    return as_given(engine.arc_changes, graph.arc_order);
}

double entropy(const ArrayGraph& graph, const Scores& scores, bool in_log_space) {
    const LockRelease release;
    const ScoredArrayGraph scored(graph, view(scores));
    PathEngine engine;
    check_possible(engine.marginals(scored, in_log_space));
    return engine.entropy(scored);
}

double span_probability(const ArrayGraph& graph, const Scores& scores, std::int64_t first, std::int64_t last,
                        const Array<bool>& allowed, bool in_log_space) {
    check_size("allowed", allowed.size(), graph.n_arcs());
    if (first < 0 || first > last || last >= graph.n_levels())
        throw std::invalid_argument("expected levels 0 ≤ first ≤ last < n_levels");
    const LockRelease release;
    const ScoredArrayGraph scored(graph, view(scores));
    PathEngine engine;
    check_possible(engine.marginals(scored, in_log_space));
    return engine.span_probability(scored, first, last,
                                   [&](std::int64_t arc) { return allowed.data()[graph.arc_order[arc]]; });
}

// The arcs of a path from START to END, given those from END to START.
nb::object forwards(std::vector<std::int64_t> arcs) {
    std::reverse(arcs.begin(), arcs.end());
    return new_array(arcs);
}

nb::tuple decode(const ArrayGraph& graph, const Scores& scores) {
    std::vector<std::int64_t> arcs;
    double score = 0;
    {
        const LockRelease release;
        std::vector<double> best;
        score = viterbi(
            ScoredArrayGraph(graph, view(scores)), best,
            [&](std::int64_t, std::int64_t, std::int64_t arc) { arcs.push_back(graph.arc_order[arc]); });
        check_possible(score);
    }
    return nb::make_tuple(score, forwards(arcs));
}

nb::list k_best(const ArrayGraph& graph, const Scores& scores, std::int64_t k) {
    std::vector<std::pair<double, std::vector<std::int64_t>>> found;
    {
        const LockRelease release;
        const ScoredArrayGraph scored(graph, view(scores));
        KBestPaths paths(scored);
        while (static_cast<std::int64_t>(found.size()) < k && paths.next()) {
            auto& [score, arcs] = found.emplace_back(paths.score(), std::vector<std::int64_t>{});
            paths.each(
                [&](std::int64_t, std::int64_t, std::int64_t arc) { arcs.push_back(graph.arc_order[arc]); });
        }
    }
    nb::list out;
    for (const auto& [score, arcs] : found) out.append(nb::make_tuple(score, forwards(arcs)));
    return out;
}

nb::list sample(const ArrayGraph& graph, const Scores& scores, const Matrix<double>& uniforms) {
    if (static_cast<std::int64_t>(uniforms.shape(1)) != std::max<std::int64_t>(graph.n_levels() - 1, 1))
        throw std::invalid_argument("expected uniforms of the shape [n, max(n_levels − 1, 1)]");
    std::vector<std::vector<std::int64_t>> drawn(uniforms.shape(0));
    {
        const LockRelease release;
        const ScoredArrayGraph scored(graph, view(scores));
        PathEngine engine;
        check_possible(engine.log_partition(scored));
        engine.sample(scored, static_cast<std::int64_t>(drawn.size()), uniforms.data(),
                      [&](std::int64_t i, std::int64_t, std::int64_t, std::int64_t arc) {
                          drawn[i].push_back(graph.arc_order[arc]);
                      });
    }
    nb::list out;
    for (const auto& arcs : drawn) out.append(forwards(arcs));
    return out;
}

}  // namespace

// The questions on the paths of a graph that is given by its arcs: scores [A], −inf for an arc that is
// absent. Paths are lists of arcs. ValueError where no path is possible.
void bind_paths(nb::module_& m) {
    nb::class_<ArrayGraph>(m, "PathGraph")
        .def(
            "__init__",
            [](ArrayGraph* self, std::int64_t n_nodes, const Array<std::int64_t>& sources,
               const Array<std::int64_t>& targets) {
                new (self) ArrayGraph(n_nodes, view(sources), view(targets));
            },
            "n_nodes"_a, "sources"_a, "targets"_a)
        .def_prop_ro("n_levels", &ArrayGraph::n_levels)
        .def("levels", &levels, "The level of each node [nodes]; −1: START.")
        .def("log_partition", &log_partition, "scores"_a, "in_log_space"_a = false)
        .def("marginals", &marginals, "scores"_a, "in_log_space"_a = false, "Of arcs [A] and of nodes.")
        .def("hessian_vector", &hessian_vector, "scores"_a, "direction"_a, "in_log_space"_a = false)
        .def("entropy", &entropy, "scores"_a, "in_log_space"_a = false)
        .def("span_probability", &span_probability, "scores"_a, "first"_a, "last"_a, "allowed"_a,
             "in_log_space"_a = false)
        .def("decode", &decode, "scores"_a)
        .def("k_best", &k_best, "scores"_a, "k"_a)
        .def("sample", &sample, "scores"_a, "uniforms"_a);
}

}  // namespace crfkit
