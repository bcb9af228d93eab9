// What questions about one sequence of names share.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

#include "data/design.hpp"
#include "text/feature_arrays.hpp"

namespace crfkit {

// A design of one sequence.
inline std::unique_ptr<Design> one_sequence(const std::shared_ptr<const Layout>& layout,
                                            std::int64_t n_positions, const FeatureArrays& features) {
    const std::array<std::int64_t, 2> sequence_ptr{0, n_positions};
    return std::make_unique<Design>(
        layout, sequence_ptr, FeatureList{features.position_ptr, features.ids, features.values},
        FeatureList{}, std::vector<std::span<const double>>{}, AllowedLabels{}, Purpose::questions, 1);
}

template <class Owned>
nanobind::object to_python(std::unique_ptr<Owned> owned) {
    return nanobind::cast(owned.release(), nanobind::rv_policy::take_ownership);
}

// The items of `names`, which are n, at these places.
inline nanobind::object chosen(const nanobind::list& names, std::int32_t n,
                               const std::vector<std::int32_t>& places) {
    nanobind::object found = nanobind::steal(PyList_New(static_cast<Py_ssize_t>(places.size())));
    if (!found.is_valid()) throw nanobind::python_error();
    // Asked only now: other threads had the lock before, and a new list may have run finalizers.
    if (nanobind::len(names) != static_cast<std::size_t>(n))
        throw std::invalid_argument("there must be one name for each label of the layout");
    for (std::size_t t = 0; t < places.size(); ++t) {
        nanobind::object name = nanobind::borrow(PyList_GET_ITEM(names.ptr(), places[t]));
        PyList_SET_ITEM(found.ptr(), t, name.release().ptr());
    }
    return found;
}

}  // namespace crfkit
