// The data set cut into blocks, each small enough that its residuals stay in the cache between the two halves
// of an evaluation: first sequence by sequence (messages → residuals), then feature by feature (residuals →
// gradient).
//
// The cut depends on the data alone, never on the number of threads; in the second half every weight belongs
// to one task. So results are the same, bit for bit, for any number of threads, with one gradient in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "data/design.hpp"
#include "data/layout.hpp"

namespace crfkit {

enum class Gather { rows, entries, dense, arcs };

// Part of the second half: lists first..last−1 of one kind (for dense: columns of block `index`).
struct GatherTask {
    Gather kind;
    std::size_t index;
    std::int64_t first, last;
};

struct Block {
    std::int64_t first_position, last_position;
    std::vector<std::int64_t> chunks;  // sequences chunks[i]..chunks[i+1]−1 are done one after the other
    Inverted rows, entries, arcs;      // arcs: `positions` counts the positions that have arcs of their own
    std::vector<std::int32_t> entry_labels;
    std::vector<std::int32_t>
        own;  // [positions] number of the position among those with arcs of their own, or −1
    std::int64_t n_own = 0;
    std::vector<GatherTask> tasks;
};

// Sequences first..last−1 cut into at most n_chunks chunks of about equally many positions.
std::vector<std::int64_t> cut_evenly(const Design& design, std::int64_t first, std::int64_t last,
                                     std::int64_t n_chunks);

// Where lists 0..n−1 are cut into tasks of at least `least_terms` additions: task i has lists
// cuts[i]..cuts[i+1]−1.
std::vector<std::int64_t> cut_lists(const Inverted& lists, std::int64_t least_terms);

std::vector<Block> cut_into_blocks(const Layout& layout, const Design& design, int n_threads);

}  // namespace crfkit
