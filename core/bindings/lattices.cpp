#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "answers/scored_lattices.hpp"
#include "bindings/active_arrays.hpp"
#include "bindings/annotations.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "lattice/function_lattices.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

void bind_lattices(nb::module_& m) {
    nb::class_<ActiveArrays>(m, "ActiveFeatures")
        .def(
            "__init__",
            [](ActiveArrays* self, bool on_arcs, std::int64_t first_weight, std::int64_t n_weights,
               std::int64_t n_parts, std::optional<Matrix<double>> dense, Maybe<std::int64_t> ptr,
               Maybe<std::int32_t> ids, Maybe<double> values) {
                ActiveFeatures active{on_arcs,
                                      first_weight,
                                      n_weights,
                                      n_parts,
                                      dense ? view(*dense) : std::span<const double>{},
                                      view(ptr),
                                      view(ids),
                                      view(values)};
                active.check();
                new (self)
                    ActiveArrays{std::move(dense), std::move(ptr), std::move(ids), std::move(values), active};
            },
            "on_arcs"_a, "first_weight"_a, "n_weights"_a, "n_parts"_a, "dense"_a = nb::none(),
            "ptr"_a = nb::none(), "ids"_a = nb::none(), "values"_a = nb::none());
    nb::class_<Lattices>(m, "Lattices")
        .def(
            "__init__",
            [](Lattices* self, std::shared_ptr<Layout> layout, std::shared_ptr<Design> design,
               const Array<std::uint8_t>& starts, const Array<std::uint8_t>& ends, int n_threads) {
                const LockRelease release;
                new (self)
                    Lattices(std::move(layout), std::move(design), view(starts), view(ends), n_threads);
            },
            "layout"_a, "design"_a, "starts"_a, "ends"_a, "n_threads"_a)
        .def_prop_ro("position_ptr",
                     [](const Lattices& self) { return new_array(self.candidates.position_ptr); })
        .def_prop_ro("labels", [](const Lattices& self) { return new_array(self.candidates.labels); })
        .def_prop_ro("arc_ptr", [](const Lattices& self) { return new_array(self.arc_ptr); })
        .def(
            "arcs",
            [](const Lattices& self, int n_threads) {
                const ArcList arcs = unlocked([&] { return self.arcs(n_threads); });
                return nb::make_tuple(new_array(arcs.before), new_array(arcs.after),
                                      new_array(arcs.position));
            },
            "n_threads"_a)
        .def(
            "score",
            [](const Lattices& self, const Blocks& blocks,
               const Array<double>& w) -> std::unique_ptr<ScoredSequences> {
                return std::make_unique<ScoredLattices>(
                    *self.layout, *self.design, std::make_unique<ActiveSource>(self, views(blocks), view(w)));
            },
            "active"_a, "w"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(),
            "The sequences at weights, for questions.");
}

}  // namespace crfkit
