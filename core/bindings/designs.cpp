#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/python_objects.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "data/position_scores.hpp"
#include "text/vocabulary.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

// What each feature adds to Σ_b coefficients[b] · (score of label b): names and numbers of those that add
// anything, largest first.
nb::tuple feature_scores_of(const Layout& self, const Array<double>& w, const Vocabulary& names,
                            const Array<std::int32_t>& ids, const Maybe<double>& values,
                            const Array<double>& coefficients) {
    if (static_cast<std::int64_t>(w.size()) < self.n_weights())
        throw std::invalid_argument("expected the weights of the layout");
    check_size("coefficients", coefficients.size(), self.n_labels);
    if (values) check_size("values", values->size(), static_cast<std::int64_t>(ids.size()));
    for (const std::int32_t id : view(ids))
        if (id < 0 || id >= self.n_features() || id >= names.size())
            throw std::invalid_argument("there is no such feature");
    std::vector<double> scores(ids.size());
    feature_scores(self, view(w), view(ids), view(values), view(coefficients), scores.data());
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < scores.size(); ++k)
        if (scores[k] != 0) order.push_back(k);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return std::abs(scores[a]) > std::abs(scores[b]); });
    nb::list found, numbers;
    for (const std::size_t k : order) {
        found.append(to_python(names.name(ids.data()[k])));
        numbers.append(scores[k]);
    }
    return nb::make_tuple(found, numbers);
}

Purpose purpose_of(const std::string& name) {
    if (name == "training") return Purpose::training;
    if (name == "patterns") return Purpose::patterns;
    if (name == "questions") return Purpose::questions;
    throw std::invalid_argument("the purpose is " + name + ", expected training, patterns or questions");
}

}  // namespace

void bind_designs(nb::module_& m) {
    nb::class_<Layout>(m, "Layout")
        .def(
            "__init__",
            [](Layout* self, std::int32_t n_labels, const Array<std::int64_t>& pair_ptr,
               const Array<std::int32_t>& pair_labels, const Array<std::int64_t>& dense_columns,
               const Array<std::int32_t>& arc_before, const Array<std::int32_t>& arc_after,
               const Array<std::int64_t>& arc_ptr, const Array<std::int32_t>& arc_triples,
               const Maybe<std::int32_t>& allowed_before, const Maybe<std::int32_t>& allowed_after, bool soft,
               const Maybe<std::int64_t>& facet_ptr, const Maybe<std::int32_t>& facet_ids,
               std::int32_t n_facets) {
                const LockRelease release;
                std::optional<Bigrams> bigrams;
                if (allowed_before)
                    bigrams.emplace(n_labels, view(allowed_before), view(allowed_after), soft);
                new (self)
                    Layout(n_labels, view(pair_ptr), view(pair_labels), view(dense_columns), view(arc_before),
                           view(arc_after), view(arc_ptr), view(arc_triples), std::move(bigrams),
                           {copy(view(facet_ptr)), copy(view(facet_ids)), n_facets});
            },
            "n_labels"_a, "pair_ptr"_a, "pair_labels"_a, "dense_columns"_a, "arc_before"_a, "arc_after"_a,
            "arc_ptr"_a, "arc_triples"_a, "allowed_before"_a = nb::none(), "allowed_after"_a = nb::none(),
            "soft"_a = false, "facet_ptr"_a = nb::none(), "facet_ids"_a = nb::none(), "n_facets"_a = 0)
        .def_prop_ro("n_weights", &Layout::n_weights)
        .def("feature_scores", &feature_scores_of, "w"_a, "names"_a, "ids"_a, "values"_a.none(),
             "coefficients"_a);
    nb::class_<Design>(m, "Design")
        .def(
            "__init__",
            [](Design* self, const std::shared_ptr<Layout>& layout, const Array<std::int64_t>& sequence_ptr,
               const Array<std::int64_t>& position_ptr, const Array<std::int32_t>& ids,
               const Maybe<double>& values, const Maybe<std::int64_t>& arc_position_ptr,
               const Maybe<std::int32_t>& arc_ids, const Maybe<double>& arc_values,
               const std::vector<Matrix<double>>& dense, int n_threads,
               const Maybe<std::int64_t>& allowed_ptr, const Maybe<std::int32_t>& allowed_labels,
               const std::string& purpose) {
                std::vector<std::span<const double>> blocks;
                for (const auto& block : dense) blocks.push_back(view(block));
                AllowedLabels allowed{copy(view(allowed_ptr)), copy(view(allowed_labels))};
                const LockRelease release;
                new (self) Design(layout, view(sequence_ptr), {view(position_ptr), view(ids), view(values)},
                                  {view(arc_position_ptr), view(arc_ids), view(arc_values)},
                                  std::move(blocks), std::move(allowed), purpose_of(purpose), n_threads);
            },
            "layout"_a, "sequence_ptr"_a, "position_ptr"_a, "ids"_a, "values"_a.none(),
            "arc_position_ptr"_a.none(), "arc_ids"_a.none(), "arc_values"_a.none(), "dense"_a, "n_threads"_a,
            "allowed_ptr"_a = nb::none(), "allowed_labels"_a = nb::none(), "purpose"_a = "training")
        .def_ro("as_batches", &Design::as_batches);
}

}  // namespace crfkit
