// A data set cut into batches of sequences of about equal length, for chains whose arcs are few.
#pragma once

#include <cstdint>
#include <vector>

#include "data/design.hpp"
#include "data/layout.hpp"

namespace crfkit {

// Positions first_position..last_position−1, whose residuals are kept until they are added up by feature.
struct BatchBlock {
    std::int64_t first_position, last_position;
    std::vector<std::int32_t> sequences;  // longest first: batch i has the kBatch entries from i · kBatch on
    std::int64_t first_sequence, last_sequence;
    Inverted features;                // for each feature its positions, counted from first_position
    std::vector<std::int64_t> tasks;  // features tasks[i]..tasks[i+1]−1 belong together
};

std::vector<BatchBlock> cut_into_batches(const Layout& layout, const Design& design, int n_threads);

}  // namespace crfkit
