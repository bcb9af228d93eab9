// Answers of the core as Python lists.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "bindings/arrays.hpp"
#include "paths/label_sequences.hpp"

namespace crfkit {

// [(score, labels [T]), …]
inline nanobind::list label_sequences(const std::vector<ScoredLabels>& found) {
    nanobind::list out;
    for (const ScoredLabels& path : found) {
        if (PyErr_CheckSignals() < 0) throw nanobind::python_error();
        out.append(nanobind::make_tuple(path.score, new_array(path.labels)));
    }
    return out;
}

// The same for each sequence.
inline nanobind::list label_sequences(const std::vector<std::vector<ScoredLabels>>& found) {
    nanobind::list out;
    for (const auto& paths : found) out.append(label_sequences(paths));
    return out;
}

}  // namespace crfkit
