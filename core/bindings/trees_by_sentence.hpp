// Numbers of arcs as Python sees them: an array for each sentence.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

#include "bindings/arrays.hpp"
#include "trees/parser.hpp"

namespace crfkit {

// [n + 1, n + 1] of each sentence, or [n + 1, n + 1, R] where labelled: views of one array, which fill(data)
// fills.
template <class Fill>
nanobind::list by_sentence(const Treebank& treebank, std::int64_t n_labels, bool labelled, const Fill& fill) {
    namespace nb = nanobind;
    const auto R = static_cast<std::size_t>(n_labels);
    const std::vector<std::int64_t> places = arc_places(treebank);
    double* numbers = nullptr;
    const nb::object all = filled<double>({static_cast<std::size_t>(places.back()) * R},
                                          [&](double* out) { fill(numbers = out); });
    nb::list out;
    for (std::int64_t n = 0; n < treebank.n_sentences(); ++n) {
        const auto side = static_cast<std::size_t>(treebank.length(n) + 1);
        const std::size_t shape[] = {side, side, R};
        out.append(nb::cast(nb::ndarray<nb::numpy, double>(numbers + static_cast<std::size_t>(places[n]) * R,
                                                           labelled ? 3 : 2, shape, all)));
    }
    return out;
}

}  // namespace crfkit
