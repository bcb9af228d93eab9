// Sequences whose attributes are still names: read with the interpreter's lock, looked up and tagged without
// it.
#include "text/named_positions.hpp"

#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <vector>

#include "answers/chain_potentials.hpp"
#include "bindings/bindings.hpp"
#include "bindings/brief_release.hpp"
#include "bindings/named_questions.hpp"
#include "bindings/position_reader.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

namespace {

using LayoutPtr = std::shared_ptr<Layout>;

std::unique_ptr<Design> design_of(const LayoutPtr& layout, const Vocabulary& vocabulary,
                                  const NamedPositions& positions) {
    return one_sequence(layout, positions.n_positions(), positions.look_up(vocabulary));
}

nb::object design_of_names(const LayoutPtr& layout, const Vocabulary& vocabulary,
                           const NamedPositions& positions) {
    return to_python(unlocked<BriefRelease>([&] { return design_of(layout, vocabulary, positions); }));
}

// [(name, value), …] of each position.
nb::list attributes_of(const NamedPositions& names) {
    nb::list positions;
    for (std::int64_t t = 0; t < names.n_positions(); ++t) {
        nb::list attributes;
        for (std::int64_t i = names.first(t); i < names.first(t + 1); ++i)
            attributes.append(nb::make_tuple(to_python(names.name(i)), names.value(i)));
        positions.append(attributes);
    }
    return positions;
}

nb::tuple tag_names(const ChainPotentials& potentials, const LayoutPtr& layout, const Vocabulary& vocabulary,
                    const NamedPositions& positions, const nb::list& labels) {
    std::vector<std::int32_t> best(static_cast<std::size_t>(positions.n_positions()));
    auto design = unlocked<BriefRelease>([&] {
        auto made = design_of(layout, vocabulary, positions);
        potentials.score(*made, 1)->decode(best.data(), 1);
        return made;
    });
    return nb::make_tuple(to_python(std::move(design)), chosen(labels, layout->n_labels, best));
}

}  // namespace

void bind_named_positions(nb::module_& m) {
    nb::class_<NamedPositions>(m, "NamedPositions", "The attributes of one sequence, by name.")
        .def(
            "__init__",
            [](NamedPositions* self, nb::handle sequence) {
                new (self) NamedPositions(read_named_positions(sequence.ptr()));
            },
            "sequence"_a)
        .def("__len__", &NamedPositions::n_positions)
        .def("attributes", &attributes_of, "Names and values of the attributes of each position.")
        .def("compact", &NamedPositions::compact, "Frees memory, where the object is kept for long.")
        .def_prop_ro("n_names", &NamedPositions::n_names, "The number of attributes at all positions.")
        .def(
            "add_to",
            [](const NamedPositions& self, Vocabulary& vocabulary) {
                return to_python(self.add_to(vocabulary));
            },
            "vocabulary"_a,
            "position_ptr, ids and values (None while every one is 1) of the attributes; the vocabulary "
            "grows by "
            "those that it lacks.");
    m.def("design_of_names", &design_of_names, "layout"_a, "vocabulary"_a, "positions"_a,
          "A design of one sequence, for questions; attributes that the vocabulary lacks are left out.");
    m.def("tag_names", &tag_names, "potentials"_a, "layout"_a, "vocabulary"_a, "positions"_a, "labels"_a,
          "The same design, and the best labels by their names.");
}

}  // namespace crfkit
