// Structures of the user's own, as graphs of label sequences.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "answers/scored_parts.hpp"
#include "bindings/annotations.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/function_slices.hpp"
#include "bindings/lock_release.hpp"
#include "output_graphs/graph_parts.hpp"
#include "training/part_loss.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

void bind_output_graphs(nb::module_& m) {
    nb::class_<OutputGraph>(m, "OutputGraph", "The label sequences of one length as the paths of a graph.")
        .def(
            "__init__",
            [](OutputGraph* self, const Array<std::int64_t>& level_ptr, const Array<std::int32_t>& labels,
               const Array<std::int64_t>& in_ptr, const Array<std::int64_t>& sources,
               const Array<std::int64_t>& weight_ptr, const Array<std::int32_t>& weights) {
                new (self) OutputGraph{copy(view(level_ptr)), copy(view(labels)),     copy(view(in_ptr)),
                                       copy(view(sources)),   copy(view(weight_ptr)), copy(view(weights))};
            },
            "level_ptr"_a, "labels"_a, "in_ptr"_a, "sources"_a, "weight_ptr"_a, "weights"_a);
    nb::class_<GraphData>(m, "GraphData", "A data set whose sequences are graphs.")
        .def(
            "__init__",
            [](GraphData* self, std::shared_ptr<Layout> layout, std::shared_ptr<Design> design,
               std::shared_ptr<PythonSlices> functions, std::int64_t first_weight,
               const std::vector<std::shared_ptr<OutputGraph>>& graphs, const Array<std::int32_t>& graph_of) {
                new (self) GraphData{std::move(layout),
                                     std::move(design),
                                     std::move(functions),
                                     first_weight,
                                     {graphs.begin(), graphs.end()},
                                     copy(view(graph_of))};
            },
            "layout"_a, "design"_a, "functions"_a.none(), "first_weight"_a, "graphs"_a, "graph_of"_a)
        .def(
            "score",
            [](std::shared_ptr<GraphData> self, const Array<double>& w,
               int n_threads) -> std::unique_ptr<ScoredSequences> {
                std::vector<double> weights = copy(view(w));
                const LockRelease release;
                auto parts = std::make_unique<GraphParts>(self, std::nullopt,
                                                          static_cast<std::int64_t>(w.size()), n_threads);
                return std::make_unique<ScoredParts>(*self->layout, *self->design, std::move(parts),
                                                     std::move(weights));
            },
            "w"_a, "n_threads"_a, nb::keep_alive<0, 1>(), "The sequences at weights, for questions.");
    m.def(
        "graph_loss",
        [](std::shared_ptr<GraphData> data, const Array<std::int32_t>& labels,
           const Maybe<std::int64_t>& set_ptr, const Maybe<std::int32_t>& set_labels,
           const Array<double>& weights, std::int64_t n_weights, int n_threads) -> std::unique_ptr<DataLoss> {
            Annotation gold = annotation_of(labels, set_ptr, set_labels, copy(view(weights)));
            const LockRelease release;
            return std::make_unique<PartLoss>(
                std::make_shared<GraphParts>(std::move(data), std::move(gold), n_weights, n_threads),
                n_threads);
        },
        "data"_a, "labels"_a, "set_ptr"_a.none(), "set_labels"_a.none(), "weights"_a, "n_weights"_a,
        "n_threads"_a);
}

}  // namespace crfkit
