#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <optional>
#include <stdexcept>

#include "arrays.hpp"
#include "bindings.hpp"
#include "pattern_objective.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

template <class Number>
using Maybe = std::optional<Array<Number>>;

void check_size(const Array<double>& w, std::int64_t n) {
    if (static_cast<std::int64_t>(w.size()) != n)
        throw std::invalid_argument("expected " + std::to_string(n) + " numbers, one for each weight, got " +
                                    std::to_string(w.size()));
}

}  // namespace

void bind_patterns(nb::module_& m) {
    nb::class_<PatternObjective>(m, "PatternObjective")
        .def(
            "__init__",
            [](PatternObjective* self, std::shared_ptr<Trellises> trellises,
               const Array<std::int32_t>& labels, const Maybe<std::int64_t>& set_ptr,
               const Maybe<std::int32_t>& set_labels, const Array<double>& weights, const Array<double>& l2,
               std::int64_t n_weights, bool single_precision, int n_threads) {
                Annotation gold{copy(view(labels)), copy(view(set_ptr)), copy(view(set_labels)),
                                copy(view(weights))};
                const nb::gil_scoped_release release;
                new (self) PatternObjective(std::move(trellises), std::move(gold), copy(view(l2)), n_weights,
                                            single_precision, n_threads);
            },
            "trellises"_a, "labels"_a, "set_ptr"_a.none(), "set_labels"_a.none(), "weights"_a, "l2"_a,
            "n_weights"_a, "single_precision"_a, "n_threads"_a)
        .def_prop_ro("n_weights", &PatternObjective::n_weights)
        .def(
            "value_and_gradient",
            [](PatternObjective& self, const Array<double>& w) {
                check_size(w, self.n_weights());
                NewArray<double> gradient({w.size()});
                double value;
                {
                    const nb::gil_scoped_release release;
                    value = self.value_and_gradient(w.data(), gradient.data());
                }
                return nb::make_tuple(value, gradient.take());
            },
            "w"_a)
        .def(
            "hessian_vector",
            [](PatternObjective& self, const Array<double>& w, const Array<double>& v) {
                check_size(w, self.n_weights());
                check_size(v, self.n_weights());
                NewArray<double> out({w.size()});
                {
                    const nb::gil_scoped_release release;
                    self.hessian_vector(w.data(), v.data(), out.data());
                }
                return out.take();
            },
            "w"_a, "v"_a)
        .def("refine", &PatternObjective::refine, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace crfkit
