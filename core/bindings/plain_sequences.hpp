// Sequences of plain positions read by several threads at once, while the calling one keeps the interpreter's
// lock.
//
// As long as that lock is kept and its owner runs no Python code, no object changes: any thread may then read
// lists, dicts and strings, as long as it changes nothing either, and calls nothing that might.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bindings/python_objects.hpp"
#include "text/feature_arrays.hpp"
#include "text/vocabulary.hpp"

namespace crfkit {

struct PlainSequences {
    std::vector<std::int64_t> sequence_ptr;  // [N + 1]
    FeatureArrays features;                  // those that the vocabulary has
};

// A list or tuple of lists or tuples of positions that PositionReader::read_plain reads; nothing where
// something else is found. The caller has the lock, and the result does not depend on the number of threads.
std::optional<PlainSequences> read_plain_sequences(PyObject* sequences, Vocabulary& vocabulary,
                                                   int n_threads);

}  // namespace crfkit
