#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <optional>
#include <stdexcept>

#include "bindings/annotations.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "patterns/objective.hpp"
#include "training/objective.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

void bind_pattern_objective(nb::module_& m) {
    nb::class_<PatternObjective>(m, "PatternObjective")
        .def(
            "__init__",
            [](PatternObjective* self, std::shared_ptr<Trellises> trellises,
               const Array<std::int32_t>& labels, const Maybe<std::int64_t>& set_ptr,
               const Maybe<std::int32_t>& set_labels, const Array<double>& weights, const Array<double>& l2,
               std::int64_t n_weights, bool single_precision, int n_threads) {
                Annotation gold = annotation_of(labels, set_ptr, set_labels, copy(view(weights)));
                const LockRelease release;
                new (self) PatternObjective(std::move(trellises), std::move(gold), copy(view(l2)), n_weights,
                                            single_precision, n_threads);
            },
            "trellises"_a, "labels"_a, "set_ptr"_a.none(), "set_labels"_a.none(), "weights"_a, "l2"_a,
            "n_weights"_a, "single_precision"_a, "n_threads"_a)
        .def_prop_ro("n_weights", &PatternObjective::n_weights)
        .def(
            "value_and_gradient",
            [](PatternObjective& self, const Array<double>& w) {
                check_size("w", w.size(), self.n_weights());
                NewArray<double> gradient({w.size()});
                double value;
                {
                    const LockRelease release;
                    value = self.value_and_gradient(w.data(), gradient.data());
                }
                return nb::make_tuple(value, gradient.take());
            },
            "w"_a)
        .def(
            "hessian_vector",
            [](PatternObjective& self, const Array<double>& w, const Array<double>& v) {
                check_size("w", w.size(), self.n_weights());
                check_size("v", v.size(), self.n_weights());
                NewArray<double> out({w.size()});
                {
                    const LockRelease release;
                    self.hessian_vector(w.data(), v.data(), out.data());
                }
                return out.take();
            },
            "w"_a, "v"_a)
        .def("refine", &PatternObjective::refine, nb::call_guard<LockRelease>());
}

}  // namespace

void bind_patterns(nb::module_& m) { bind_pattern_objective(m); }

}  // namespace crfkit
