// The parts of the score of an arc, for Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <stdexcept>

#include "bindings/arrays.hpp"
#include "trees/arc_context.hpp"

namespace crfkit {

// (templates, sums of their weights, scores of labels [R]) of the arc head → dependent of sentence n.
template <class Parser>
nanobind::tuple explain_arc(const Parser& self, const Treebank& treebank, std::int64_t n, std::int64_t head,
                            std::int64_t dependent) {
    if (n < 0 || n >= treebank.n_sentences() || head < 0 || head > treebank.length(n) || dependent < 1 ||
        dependent > treebank.length(n) || head == dependent)
        throw std::invalid_argument("there is no such arc");
    const ArcContext found = arc_context(self.weights(), treebank, n, head, dependent);
    return nanobind::make_tuple(new_array(found.templates), new_array(found.features),
                                new_array(found.labels));
}

}  // namespace crfkit
