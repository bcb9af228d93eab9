#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <optional>
#include <stdexcept>

#include "answers/pattern_tagger.hpp"
#include "bindings/annotations.hpp"
#include "bindings/answers.hpp"
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

nb::object log_partitions(const PatternTagger& self, const Trellises& trellises,
                          const Maybe<std::int32_t>& labels, const Maybe<std::int64_t>& set_ptr,
                          const Maybe<std::int32_t>& set_labels, int n_threads) {
    const Annotation allowed = annotation_of(labels, set_ptr, set_labels);
    if (labels) check_annotation(self.layout(), *trellises.design, allowed);
    return filled<double>({static_cast<std::size_t>(trellises.n_sequences())}, [&](double* out) {
        self.log_partitions(trellises, labels ? &allowed : nullptr, out, n_threads);
    });
}

void bind_pattern_tagger(nb::module_& m) {
    nb::class_<PatternTagger>(m, "PatternTagger")
        .def(
            "__init__",
            [](PatternTagger* self, std::shared_ptr<Layout> layout, const Array<double>& w,
               std::int64_t first_weight) {
                const LockRelease release;
                new (self) PatternTagger(std::move(layout), copy(view(w)), first_weight);
            },
            "layout"_a, "w"_a, "first_weight"_a)
        .def(
            "best",
            [](const PatternTagger& self, const Trellises& trellises, int n_threads) {
                return filled<std::int32_t>({static_cast<std::size_t>(trellises.design->n_positions())},
                                            [&](std::int32_t* out) { self.best(trellises, out, n_threads); });
            },
            "trellises"_a, "n_threads"_a)
        .def(
            "marginals",
            [](const PatternTagger& self, const Trellises& trellises, int n_threads) {
                return filled<double>({static_cast<std::size_t>(trellises.design->n_positions()),
                                       static_cast<std::size_t>(self.layout().n_labels)},
                                      [&](double* out) { self.marginals(trellises, out, n_threads); });
            },
            "trellises"_a, "n_threads"_a)
        .def("log_partitions", &log_partitions, "trellises"_a, "labels"_a.none(), "set_ptr"_a.none(),
             "set_labels"_a.none(), "n_threads"_a)
        .def(
            "k_best",
            [](const PatternTagger& self, const Trellises& trellises, std::int64_t k, int n_threads) {
                std::vector<std::vector<ScoredLabels>> found;
                {
                    const LockRelease release;
                    found = self.k_best(trellises, k, n_threads);
                }
                return label_sequences(found);
            },
            "trellises"_a, "k"_a, "n_threads"_a)
        .def(
            "sample",
            [](const PatternTagger& self, const Trellises& trellises, std::int64_t n,
               const Array<double>& uniforms, int n_threads) {
                if (n < 0 ||
                    static_cast<std::int64_t>(uniforms.size()) != n * trellises.design->n_positions())
                    throw std::invalid_argument("expected a uniform number for each sample and position");
                return filled<std::int32_t>({uniforms.size()}, [&](std::int32_t* out) {
                    self.sample(trellises, n, uniforms.data(), out, n_threads);
                });
            },
            "trellises"_a, "n"_a, "uniforms"_a, "n_threads"_a);
}

}  // namespace

void bind_patterns(nb::module_& m) {
    bind_pattern_objective(m);
    bind_pattern_tagger(m);
}

}  // namespace crfkit
