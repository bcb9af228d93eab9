// Answers of the core as Python lists.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "bindings/arrays.hpp"
#include "paths/label_sequences.hpp"
#include "trees/k_best.hpp"

namespace crfkit {

// [(score, labels [T]), …]
inline nanobind::list as_list(const std::vector<ScoredLabels>& found) {
    nanobind::list out;
    for (const ScoredLabels& path : found) {
        if (PyErr_CheckSignals() < 0) throw nanobind::python_error();
        out.append(nanobind::make_tuple(path.score, new_array(path.labels)));
    }
    return out;
}

// [(score, heads [T], labels [T]), …]
inline nanobind::list as_list(const std::vector<ScoredTree>& found) {
    nanobind::list out;
    for (const ScoredTree& tree : found)
        out.append(nanobind::make_tuple(tree.score, new_array(tree.heads), new_array(tree.labels)));
    return out;
}

// The same for each sequence.
template <class Found>
nanobind::list as_list(const std::vector<std::vector<Found>>& found) {
    nanobind::list out;
    for (const auto& some : found) out.append(as_list(some));
    return out;
}

}  // namespace crfkit
