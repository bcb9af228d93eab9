#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "patterns/trellis.hpp"
#include "patterns/trellis_size.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

// TrellisSizeError as a Python exception, with (message, sequence, position, n_states, n_arcs, weights) as
// args.
void bind_too_large(nb::module_& m) {
    static PyObject* type = PyErr_NewException("crfkit._core.TrellisSizeError", PyExc_ValueError, nullptr);
    m.attr("TrellisSizeError") = nb::borrow(type);
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const TrellisSizeError& e) {
            const nb::tuple args =
                nb::make_tuple(e.what(), e.sequence, e.position, e.n_states, e.n_arcs, new_array(e.weights));
            PyErr_SetObject(type, args.ptr());
        }
    });
}

// (nodes of each position [T], arcs of each step [T + 1], the same without pools [T + 1])
nb::tuple sizes(const Trellises& self, std::int64_t n) {
    if (n < 0 || n >= self.n_sequences()) throw nb::index_error("there is no such sequence");
    std::vector<std::int64_t> nodes, arcs, transitions;
    for (const std::int32_t number : self.steps_of_sequence(n)) {
        const Step& step = self.table.steps[number];
        nodes.push_back(step.n_after);
        arcs.push_back(step.n_arcs);
        transitions.push_back(step.n_transitions);
    }
    if (!nodes.empty()) nodes.pop_back();  // the sink
    return nb::make_tuple(new_array(nodes), new_array(arcs), new_array(transitions));
}

// Whether the sequence was read from its last position to its first.
bool turned(const Trellises& self, std::int64_t n) {
    if (n < 0 || n >= self.n_sequences()) throw nb::index_error("there is no such sequence");
    const auto steps = self.steps_of_sequence(n);
    return !steps.empty() && self.table.steps[steps[0]].silent_out;
}

}  // namespace

void bind_trellis(nb::module_& m) {
    bind_too_large(m);
    nb::class_<PatternMatcher>(m, "PatternMatcher")
        .def(
            "__init__",
            [](PatternMatcher* self, std::int32_t n_labels, const Array<std::int64_t>& set_ptr,
               const Array<std::int32_t>& set_labels, const Array<std::int64_t>& out_ptr,
               const Array<std::int32_t>& out_set, const Array<std::int32_t>& out_next,
               const Array<std::int32_t>& activates, const Array<std::uint8_t>& last_only) {
                new (self) PatternMatcher(n_labels, view(set_ptr), view(set_labels), view(out_ptr),
                                          view(out_set), view(out_next), view(activates), view(last_only));
            },
            "n_labels"_a, "set_ptr"_a, "set_labels"_a, "out_ptr"_a, "out_set"_a, "out_next"_a, "activates"_a,
            "last_only"_a)
        .def_prop_ro("n_weights", [](const PatternMatcher& self) { return self.n_weights; });
    nb::class_<Trellises>(m, "Trellises")
        .def(
            "__init__",
            [](Trellises* self, std::shared_ptr<Layout> layout, std::shared_ptr<Design> design,
               std::shared_ptr<PatternMatcher> matcher, const Array<std::int64_t>& start_ptr,
               const Array<std::int32_t>& start_states, const Maybe<double>& start_values,
               std::int64_t first_weight, std::int64_t max_states, std::int64_t max_arcs, int n_threads,
               const Maybe<std::int32_t>& common) {
                const PatternStarts starts{view(start_ptr), view(start_states), view(start_values),
                                           view(common)};
                const LockRelease release;
                new (self) Trellises(std::move(layout), std::move(design), std::move(matcher), starts,
                                     first_weight, {max_states, max_arcs}, n_threads);
            },
            "layout"_a, "design"_a, "matcher"_a, "start_ptr"_a, "start_states"_a, "start_values"_a.none(),
            "first_weight"_a, "max_states"_a, "max_arcs"_a, "n_threads"_a, "common"_a.none() = nb::none())
        .def_prop_ro("n_trellises", &Trellises::n_trellises)
        .def_prop_ro("n_steps", [](const Trellises& self) { return self.table.steps.size(); })
        .def_prop_ro("n_arcs", [](const Trellises& self) { return self.table.n_arcs(); })
        .def_prop_ro("n_active", [](const Trellises& self) { return self.table.n_active(); })
        .def_prop_ro("trellis_of", [](const Trellises& self) { return new_array(self.trellis_of); })
        .def("turned", &turned, "sequence"_a)
        .def("sizes", &sizes, "sequence"_a)
        .def("arcs", [](const Trellises& self) {
            std::vector<std::int32_t> after;
            for (std::int32_t b = 0; b < self.bigrams.n_labels; ++b)
                after.insert(after.end(), self.bigrams.in_ptr[b + 1] - self.bigrams.in_ptr[b], b);
            return nb::make_tuple(new_array(self.bigrams.in_before), new_array(after));
        });
    // (cells, grouped transitions, spans) of each position of one sequence, as Qian et al. (2009) count.
    m.def(
        "pattern_partition",
        [](const PatternMatcher& matcher, const Array<std::int64_t>& start_ptr,
           const Array<std::int32_t>& start_states, const Maybe<double>& start_values,
           std::int64_t max_states, std::int64_t max_arcs) {
            const PatternStarts starts{view(start_ptr), view(start_states), view(start_values)};
            const Partition found =
                unlocked([&] { return partition_of(matcher, starts, {max_states, max_arcs}); });
            return nb::make_tuple(new_array(found.cells), new_array(found.transitions),
                                  new_array(found.spans));
        },
        "matcher"_a, "start_ptr"_a, "start_states"_a, "start_values"_a.none(), "max_states"_a, "max_arcs"_a);
}

}  // namespace crfkit
