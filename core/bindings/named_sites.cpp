// Sequences whose attributes are still names: read with the interpreter's lock, looked up and tagged without
// it.
#include "named_sites.hpp"

#include <nanobind/stl/shared_ptr.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

#include "bindings.hpp"
#include "brief_release.hpp"
#include "design.hpp"
#include "site_reader.hpp"
#include "tagger.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

namespace {

using LayoutPtr = std::shared_ptr<Layout>;

// One sequence, for questions.
std::unique_ptr<Design> design_of(const LayoutPtr& layout, const Vocabulary& vocabulary,
                                  const NamedSites& sites) {
    const FeatureArrays found = sites.look_up(vocabulary);
    const std::array<std::int64_t, 2> sequence_ptr{0, sites.n_sites()};
    return std::make_unique<Design>(
        layout, sequence_ptr, FeatureList{found.site_ptr, found.ids, found.values}, FeatureList{},
        std::vector<std::span<const double>>{}, AllowedLabels{}, Purpose::questions, 1);
}

nb::object to_python(std::unique_ptr<Design> design) {
    return nb::cast(design.release(), nb::rv_policy::take_ownership);
}

nb::object design_of_names(const LayoutPtr& layout, const Vocabulary& vocabulary, const NamedSites& sites) {
    std::unique_ptr<Design> design;
    {
        const BriefRelease release;
        design = design_of(layout, vocabulary, sites);
    }
    return to_python(std::move(design));
}

// The items of `names`, which are n, at these places.
nb::object chosen(const nb::list& names, std::int32_t n, const std::vector<std::int32_t>& places) {
    nb::object found = nb::steal(PyList_New(static_cast<Py_ssize_t>(places.size())));
    if (!found.is_valid()) throw nb::python_error();
    // Asked only now: other threads had the lock before, and a new list may have run finalizers.
    if (nb::len(names) != static_cast<std::size_t>(n))
        throw std::invalid_argument("there must be one name for each label of the layout");
    for (std::size_t t = 0; t < places.size(); ++t)
        PyList_SET_ITEM(found.ptr(), t, nb::borrow(PyList_GET_ITEM(names.ptr(), places[t])).release().ptr());
    return found;
}

nb::tuple tag_names(const Tagger& tagger, const LayoutPtr& layout, const Vocabulary& vocabulary,
                    const NamedSites& sites, const nb::list& labels) {
    std::unique_ptr<Design> design;
    std::vector<std::int32_t> best(static_cast<std::size_t>(sites.n_sites()));
    {
        const BriefRelease release;
        design = design_of(layout, vocabulary, sites);
        tagger.best(*design, best.data(), 1);
    }
    return nb::make_tuple(to_python(std::move(design)), chosen(labels, layout->n_labels, best));
}

}  // namespace

void bind_named_sites(nb::module_& m) {
    nb::class_<NamedSites>(m, "NamedSites", "The attributes of one sequence, by name.")
        .def(
            "__init__",
            [](NamedSites* self, nb::handle sequence) {
                new (self) NamedSites(read_named_sites(sequence.ptr()));
            },
            "sequence"_a)
        .def("__len__", &NamedSites::n_sites)
        .def(
            "add_to",
            [](const NamedSites& self, Vocabulary& vocabulary) { return to_python(self.add_to(vocabulary)); },
            "vocabulary"_a,
            "site_ptr, ids and values (None while every one is 1) of the attributes; the vocabulary grows by "
            "those that it lacks.");
    m.def("design_of_names", &design_of_names, "layout"_a, "vocabulary"_a, "sites"_a,
          "A design of one sequence, for questions; attributes that the vocabulary lacks are left out.");
    m.def("tag_names", &tag_names, "tagger"_a, "layout"_a, "vocabulary"_a, "sites"_a, "labels"_a,
          "The same design, and the best labels by their names.");
}

}  // namespace crfkit
