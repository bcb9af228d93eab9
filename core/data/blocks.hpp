// The data set cut into blocks, each small enough that its residuals stay in the cache between the two halves
// of an evaluation: first sequence by sequence (messages → residuals), then feature by feature (residuals →
// gradient).
//
// The cut depends on the data alone, never on the number of threads, and the sums of blocks are added up in
// their order, or rounded so that any order will do. So results are the same, bit for bit, for any number of
// threads, with one gradient in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "data/design.hpp"
#include "data/feature_groups.hpp"
#include "data/layout.hpp"

namespace crfkit {

struct Block {
    std::int64_t first_position, last_position;
    std::int64_t first_sequence, last_sequence;
    Inverted rows, entries, arcs;       // arcs: `positions` counts the positions that have arcs of their own
    Buffer<std::int32_t> entry_labels;  // [lists of entries]
    std::vector<std::int32_t>
        own;  // [positions] number of the position among those with arcs of their own, or −1
    std::int64_t n_own = 0;
    std::vector<std::int64_t> row_ranges, entry_ranges, arc_ranges;  // [kRanges + 1] of the lists, by id
    // The lists of rows of a range are in the order of their lengths: the first one that is long, and how
    // many long ones earlier ranges have.
    std::vector<std::int64_t> first_long_row, n_long_rows;  // [kRanges], [kRanges + 1]

    void move_to(ScratchMemory& memory) {
        for (Inverted* lists : {&rows, &entries, &arcs}) lists->move_to(memory);
        memory.take(entry_labels);
    }
};

// The ids of features and weights are cut into so many ranges, the same in all blocks: what the lists of one
// range sum up to is added to weights that no other range has.
inline constexpr std::int64_t kRanges = 64;

// The part of 0..n−1 that belongs to a range, in whole units.
struct Part {
    Part(std::int64_t n, std::int64_t range, std::int64_t unit = 1) {
        const std::int64_t n_units = (n + unit - 1) / unit;
        begin = std::min(n, n_units * range / kRanges * unit);
        end = std::min(n, n_units * (range + 1) / kRanges * unit);
    }
    std::int64_t begin, end;
};

// Sequences first..last−1 cut into at most n_chunks chunks of about equally many positions.
std::vector<std::int64_t> cut_evenly(const Design& design, std::int64_t first, std::int64_t last,
                                     std::int64_t n_chunks);

// Cuts ids 0..n_ids−1 into ranges in which about equally many lists of all blocks are, and writes down where
// they begin among the lists of each block, whose ids ascend.
template <class AnyBlock>
void cut_ranges(std::vector<AnyBlock>& blocks, Inverted AnyBlock::* lists, std::int64_t n_ids,
                std::vector<std::int64_t> AnyBlock::* ranges) {
    std::vector<std::int64_t> n_before(static_cast<std::size_t>(n_ids) + 1, 0);  // lists of smaller ids
    for (const AnyBlock& block : blocks)
        for (const std::int32_t id : (block.*lists).ids) ++n_before[static_cast<std::size_t>(id) + 1];
    for (std::size_t id = 0; id + 1 < n_before.size(); ++id) n_before[id + 1] += n_before[id];
    for (AnyBlock& block : blocks) {
        const auto& ids = (block.*lists).ids;
        for (std::int64_t r = 0; r < kRanges; ++r) {
            const auto cut =
                std::lower_bound(n_before.begin(), n_before.end(), n_before.back() * r / kRanges);
            (block.*ranges)
                .push_back(std::lower_bound(ids.begin(), ids.end(), cut - n_before.begin()) - ids.begin());
        }
        (block.*ranges).push_back(ids.size());
    }
}

// How a data set is used: block by block, each by all threads; or many blocks at once, each by one thread.
// Then blocks are smaller, so that a large machine has work for all of its cores. A shard of a larger data
// set is not cut into small ones: other processes have work from other shards.
enum class BlockUse { one_by_one, side_by_side, shard };

// How large the blocks of a data set of n positions (or nodes) are that are evaluated side by side: small
// enough that there are eight for each of 16 threads, but not smaller than `good`, below which most features
// occur but once or twice in a block and summing costs more; where there is little data, there are 32 blocks,
// or fewer with `least` positions each.
struct BlockSizes {
    std::int64_t least, good, most;
    std::int64_t size(std::int64_t n, BlockUse use) const {
        return std::clamp(n / 128, use == BlockUse::shard ? good : std::clamp(n / 32, least, good), most);
    }
};

std::vector<Block> cut_into_blocks(const Layout& layout, const Design& design, const FeatureGroups& groups,
                                   BlockUse use, int n_threads);

// What passes over a data set need: both are there, or neither where the work was interrupted.
struct GroupedBlocks {
    GroupedBlocks(const Layout& layout, const Design& design, BlockUse use, int n_threads)
        : groups(layout, design, n_threads),
          blocks(cut_into_blocks(layout, design, groups, use, n_threads)) {}

    void move_to(ScratchMemory& memory) {
        groups.move_to(memory);
        for (Block& block : blocks) block.move_to(memory);
    }

    // How often the most frequent feature, of positions or of transitions, is active. A position may have a
    // feature several times. One thread at a time may ask.
    std::int64_t most_active() const;

    FeatureGroups groups;
    std::vector<Block> blocks;

  private:
    mutable std::optional<std::int64_t> most_active_;  // from the first question on
};

}  // namespace crfkit
