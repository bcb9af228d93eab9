#include <nanobind/nanobind.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/path_questions.hpp"
#include "paths/array_graph.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

// Numbers of sorted nodes or arcs in the order in which these were given.
void as_given(const std::vector<double>& sorted, const std::vector<std::int64_t>& order, double* out) {
    for (std::size_t i = 0; i < order.size(); ++i) out[order[i]] = sorted[i];
}

// A graph that is given by its arcs with scores [A], −inf for an arc that is absent. Outputs are lists of
// arcs. The graph must outlive it.
class ScoredPaths : public EngineSums<ScoredPaths> {
  public:
    static constexpr const char* kOutput = "path";

    ScoredPaths(const ArrayGraph& graph, const Array<double>& scores)
        : graph_(graph), scored_(graph, view(scores)) {}
    const ScoredArrayGraph& graph() const { return scored_; }
    bool empty() const { return false; }
    Shapes shapes() const { return {{graph_.arc_order.size()}, {graph_.node_order.size()}}; }
    bool fits(const ScoredPaths& direction) const { return &direction.graph_ == &graph_; }
    void collect(const std::vector<double>& of_nodes, const std::vector<double>& of_arcs,
                 const PartNumbers& parts) const {
        as_given(of_arcs, graph_.arc_order, parts[0]);
        as_given(of_nodes, graph_.node_order, parts[1]);
    }
    double span_probability(std::int64_t first, std::int64_t last, const Array<bool>& allowed,
                            bool in_log_space) const {
        check_size("allowed", allowed.size(), graph_.n_arcs());
        if (first < 0 || first > last || last >= graph_.n_levels())
            throw std::invalid_argument("expected levels 0 ≤ first ≤ last < n_levels");
        const LockRelease release;
        PathEngine engine;
        check_possible<ScoredPaths>(engine.marginals(scored_, in_log_space));
        return engine.span_probability(
            scored_, first, last, [&](std::int64_t arc) { return allowed.data()[graph_.arc_order[arc]]; });
    }

  private:
    const ArrayGraph& graph_;
    ScoredArrayGraph scored_;
};

}  // namespace

void bind_paths(nb::module_& m) {
    nb::class_<ArrayGraph>(m, "PathGraph")
        .def(
            "__init__",
            [](ArrayGraph* self, std::int64_t n_nodes, const Array<std::int64_t>& sources,
               const Array<std::int64_t>& targets) {
                new (self) ArrayGraph(n_nodes, view(sources), view(targets));
            },
            "n_nodes"_a, "sources"_a, "targets"_a)
        .def_prop_ro("n_levels", &ArrayGraph::n_levels);
    nb::class_<ScoredPaths> scored(m, "ScoredPaths");
    scored
        .def(nb::init<const ArrayGraph&, const Array<double>&>(), "graph"_a, "scores"_a,
             nb::keep_alive<1, 2>())
        .def("span_probability", &ScoredPaths::span_probability, "first"_a, "last"_a, "allowed"_a,
             "in_log_space"_a = false);
    bind_path_questions(scored);
}

}  // namespace crfkit
