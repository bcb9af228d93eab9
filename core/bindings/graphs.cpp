#include <nanobind/nanobind.h>

#include <cstdint>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "graphs/factor_graph.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

void bind_graphs(nb::module_& m) {
    nb::class_<FactorGraph>(m, "FactorGraph")
        .def(
            "__init__",
            [](FactorGraph* self, const Array<std::int32_t>& cardinalities,
               const Array<std::int64_t>& scope_ptr, const Array<std::int32_t>& scopes) {
                new (self) FactorGraph(view(cardinalities), view(scope_ptr), view(scopes));
            },
            "cardinalities"_a, "scope_ptr"_a, "scopes"_a)
        .def_prop_ro("n_scores", &FactorGraph::n_scores)
        .def(
            "score",
            [](const FactorGraph& self, const Array<double>& scores, const Array<std::int32_t>& assignment) {
                self.check_scores(view(scores));
                check_size("assignment", assignment.size(), self.n_variables());
                for (std::int64_t v = 0; v < self.n_variables(); ++v)
                    if (assignment.data()[v] < 0 || assignment.data()[v] >= self.cardinalities[v])
                        throw std::invalid_argument("a value out of range");
                return self.score(view(scores), view(assignment));
            },
            "scores"_a, "assignment"_a);
}

}  // namespace crfkit
