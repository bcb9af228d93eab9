// Data sets of factor graphs with tied weights, and their loss.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "graphs/factor_answers.hpp"
#include "graphs/factor_data.hpp"
#include "graphs/factor_loss.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

Criterion criterion_named(const std::string& name) {
    if (name == "likelihood") return Criterion::likelihood;
    if (name == "belief_propagation") return Criterion::belief_propagation;
    if (name == "tree_reweighted") return Criterion::tree_reweighted;
    if (name == "pseudo_likelihood") return Criterion::pseudo_likelihood;
    if (name == "piecewise") return Criterion::piecewise;
    throw std::invalid_argument("an unknown criterion: " + name);
}

// Raises ValueError(message, number of the graph, variables, whether it is too large).
[[noreturn]] void raise(const GraphError& error) {
    const bool too_large = dynamic_cast<const GraphTooLarge*>(&error) != nullptr;
    nb::list variables;
    for (const std::int32_t v : error.variables) variables.append(v);
    const nb::object arguments = nb::make_tuple(error.what(), error.graph, variables, too_large);
    PyErr_SetObject(PyExc_ValueError, arguments.ptr());
    throw nb::python_error();
}

// What work() gives, without the lock; errors of single graphs are raised with their numbers.
template <class Work>
auto answered(const Work& work) {
    try {
        return unlocked(work);
    } catch (const GraphError& error) {
        raise(error);
    }
}

}  // namespace

void bind_factor_losses(nb::module_& m) {
    nb::class_<GraphShape>(m, "GraphShape")
        .def(
            "__init__",
            [](GraphShape* self, const Array<std::int32_t>& cardinalities,
               const Array<std::int64_t>& scope_ptr, const Array<std::int32_t>& scopes,
               std::int64_t n_variables, const Array<double>& fixed) {
                new (self) GraphShape{FactorGraph(view(cardinalities), view(scope_ptr), view(scopes)),
                                      n_variables, copy(view(fixed))};
            },
            "cardinalities"_a, "scope_ptr"_a, "scopes"_a, "n_variables"_a, "fixed"_a);
    nb::class_<FactorData>(m, "FactorData")
        .def(
            "__init__",
            [](FactorData* self, const Array<std::int64_t>& entry_ptr,
               const Array<std::int64_t>& configurations, const Array<std::int64_t>& entry_weights,
               const Array<std::int64_t>& weight_ptr, std::vector<std::shared_ptr<GraphShape>> known,
               const Array<std::int64_t>& shapes, const Array<std::int64_t>& first_table,
               const Array<std::int64_t>& feature_ptr, const Array<std::int64_t>& feature_ids,
               const Array<double>& values, const Array<std::int64_t>& allowed_ptr,
               const Array<std::uint8_t>& allowed, const Array<double>& weights) {
                FactorData data{{copy(view(entry_ptr)), copy(view(configurations)), copy(view(entry_weights)),
                                 copy(view(weight_ptr))},
                                {known.begin(), known.end()},
                                copy(view(shapes)),
                                copy(view(first_table)),
                                copy(view(feature_ptr)),
                                copy(view(feature_ids)),
                                copy(view(values)),
                                copy(view(allowed_ptr)),
                                copy(view(allowed)),
                                copy(view(weights))};
                const LockRelease release;
                data.check();
                new (self) FactorData(std::move(data));
            },
            "entry_ptr"_a, "configurations"_a, "entry_weights"_a, "weight_ptr"_a, "known"_a, "shapes"_a,
            "first_table"_a, "feature_ptr"_a, "feature_ids"_a, "values"_a, "allowed_ptr"_a, "allowed"_a,
            "weights"_a);
    m.def(
        "factor_loss",
        [](std::shared_ptr<FactorData> data, const std::string& criterion, std::int64_t memory_limit,
           int n_threads) -> std::unique_ptr<DataLoss> {
            const Criterion named = criterion_named(criterion);
            return answered([&] {
                auto source = std::make_shared<FactorSource>(std::move(data), named, memory_limit, n_threads);
                source->check_possible(n_threads);
                return std::make_unique<FactorLoss>(std::move(source), n_threads);
            });
        },
        "data"_a, "criterion"_a, "memory_limit"_a, "n_threads"_a);
    nb::class_<FactorSource>(m, "FactorAnswers")
        .def(
            "__init__",
            [](FactorSource* self, std::shared_ptr<FactorData> data, const std::string& criterion,
               std::int64_t memory_limit, int n_threads) {
                const Criterion named = criterion_named(criterion);
                answered([&] { new (self) FactorSource(std::move(data), named, memory_limit, n_threads); });
            },
            "data"_a, "criterion"_a, "memory_limit"_a, "n_threads"_a)
        .def(
            "decode",
            [](const FactorSource& self, const Array<double>& w, int n_threads) {
                check_size("w", w.size(), self.data.features.n_weights());
                return new_array(answered([&] { return decode_graphs(self, w.data(), n_threads); }));
            },
            "w"_a, "n_threads"_a)
        .def(
            "marginals",
            [](const FactorSource& self, const Array<double>& w, int n_threads) {
                check_size("w", w.size(), self.data.features.n_weights());
                return new_array(answered([&] { return graph_marginals(self, w.data(), n_threads); }));
            },
            "w"_a, "n_threads"_a);
}

}  // namespace crfkit
