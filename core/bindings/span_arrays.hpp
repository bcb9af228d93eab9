// Spans as NumPy arrays.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "paths/span_labels.hpp"

namespace crfkit {

// (ptr [N + 1], starts, ends, types, probabilities) of the spans of all sequences.
inline nanobind::tuple as_arrays(const std::vector<std::vector<ScoredSpan>>& found) {
    std::vector<std::int64_t> ptr{0}, starts, ends;
    std::vector<std::int32_t> types;
    std::vector<double> probabilities;
    for (const auto& spans : found) {
        for (const ScoredSpan& span : spans) {
            starts.push_back(span.start);
            ends.push_back(span.end);
            types.push_back(span.type);
            probabilities.push_back(span.probability);
        }
        ptr.push_back(static_cast<std::int64_t>(starts.size()));
    }
    return nanobind::make_tuple(new_array(std::move(ptr)), new_array(std::move(starts)),
                                new_array(std::move(ends)), new_array(std::move(types)),
                                new_array(std::move(probabilities)));
}

}  // namespace crfkit
