#include "data/blocks.hpp"

#include <algorithm>

#include "base/interruption.hpp"
#include "base/threads.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kBlockBytes = 2 << 20;        // of residuals, counted in single precision
constexpr std::int64_t kOwnArcBytes = 16 << 20;      // of residuals of arcs that belong to one position
constexpr std::int64_t kLeast = 1024, kGood = 6144;  // positions of a block

std::int64_t own_arc_positions(const Design& design, std::int64_t first, std::int64_t last) {
    std::int64_t n = 0;
    if (design.arcs.ptr.size() > 0)
        for (std::int64_t t = first; t < last; ++t) n += design.arcs.ptr[t + 1] > design.arcs.ptr[t];
    return n;
}

void fill(const Layout& layout, const Design& design, const FeatureGroups& groups, Block& block) {
    std::vector<std::int32_t> scratch(
        std::max({static_cast<std::size_t>(groups.n_rows()), layout.pair_labels.size(),
                  static_cast<std::size_t>(layout.n_arc_features())}),
        0);
    block.rows = invert(groups.features().rows, block.first_position, block.last_position, scratch);
    block.entries = invert(groups.features().entries, block.first_position, block.last_position, scratch);
    if (design.arcs.ptr.size() == 0) return;
    block.own.assign(static_cast<std::size_t>(block.last_position - block.first_position), -1);
    for (std::int64_t t = block.first_position; t < block.last_position; ++t)
        if (design.arcs.ptr[t + 1] > design.arcs.ptr[t])
            block.own[t - block.first_position] = static_cast<std::int32_t>(block.n_own++);
    block.arcs = invert(design.arcs, block.first_position, block.last_position, scratch);
    for (std::int32_t& position : block.arcs.positions) position = block.own[position];
}

// Lists of at most so many positions are short: to read these positions again costs no more than to store
// their sum and to read that.
constexpr std::int64_t kShort = 4;

void find_long_rows(Block& block) {
    block.n_long_rows.push_back(0);
    for (std::int64_t r = 0; r < kRanges; ++r) {
        std::int64_t k = block.row_ranges[r];
        const std::int64_t end = block.row_ranges[r + 1];
        while (k < end && block.rows.ptr[k + 1] - block.rows.ptr[k] <= kShort) ++k;
        block.first_long_row.push_back(k);
        block.n_long_rows.push_back(block.n_long_rows.back() + end - k);
    }
}

std::int64_t most_positions(const Layout& layout, const Design& design, BlockUse use) {
    const std::int64_t row = (layout.n_labels + 15) / 16 * 16;
    const std::int64_t most = std::max<std::int64_t>(4096, kBlockBytes / (row * 4));
    if (use == BlockUse::one_by_one) return most;
    return BlockSizes{kLeast, std::min(kGood, most), most}.size(design.n_positions(), use);
}

}  // namespace

std::vector<std::int64_t> cut_evenly(const Design& design, std::int64_t first, std::int64_t last,
                                     std::int64_t n_chunks) {
    const std::int64_t n_positions = design.sequence_ptr[last] - design.sequence_ptr[first];
    const std::int64_t size = std::max<std::int64_t>(1, (n_positions + n_chunks - 1) / n_chunks);
    std::vector<std::int64_t> cuts{first};
    for (std::int64_t n = first + 1; n <= last; ++n)
        if (n == last || design.sequence_ptr[n] - design.sequence_ptr[cuts.back()] >= size) cuts.push_back(n);
    return cuts;
}

std::vector<Block> cut_into_blocks(const Layout& layout, const Design& design, const FeatureGroups& groups,
                                   BlockUse use, int n_threads) {
    const std::int64_t L = layout.n_labels, row = (L + 15) / 16 * 16,
                       most = most_positions(layout, design, use);
    const std::int64_t most_own = std::max<std::int64_t>(16, kOwnArcBytes / (L * row * 4));
    // Towards the end of much data blocks are smaller, so that all threads end at about the same time: half
    // as large in the last eighth, a quarter in the last part of 32.
    const bool shrinks = use == BlockUse::side_by_side && most > kGood;
    const auto size_at = [&](std::int64_t position) {
        const std::int64_t left = design.n_positions() - position;
        if (!shrinks || left > design.n_positions() / 8) return most;
        return left > design.n_positions() / 32 ? most / 2 : most / 4;
    };
    std::vector<Block> blocks;
    for (std::int64_t first = 0; first < design.n_sequences();) {
        std::int64_t last = first, own = 0;
        const std::int64_t size = size_at(design.sequence_ptr[first]);
        while (last < design.n_sequences()) {
            own += own_arc_positions(design, design.sequence_ptr[last], design.sequence_ptr[last + 1]);
            const bool full =
                design.sequence_ptr[last + 1] - design.sequence_ptr[first] > size || own > most_own;
            if (full && last > first) break;
            ++last;
            if (full) break;
        }
        Block block;
        block.first_position = design.sequence_ptr[first];
        block.last_position = design.sequence_ptr[last];
        block.first_sequence = first;
        block.last_sequence = last;
        blocks.push_back(std::move(block));
        first = last;
    }
    parallel_for(static_cast<std::int64_t>(blocks.size()), n_threads,
                 [&](std::int64_t i, int) { fill(layout, design, groups, blocks[i]); });
    cut_ranges(blocks, &Block::rows, groups.n_rows(), &Block::row_ranges);
    cut_ranges(blocks, &Block::entries, static_cast<std::int64_t>(layout.pair_labels.size()),
               &Block::entry_ranges);
    cut_ranges(blocks, &Block::arcs, layout.n_arc_features(), &Block::arc_ranges);
    parallel_for(static_cast<std::int64_t>(blocks.size()), n_threads, [&](std::int64_t i, int) {
        Block& block = blocks[i];
        block.rows = sort_by_length(block.rows, block.row_ranges);
        find_long_rows(block);
        block.entries = sort_by_length(block.entries, block.entry_ranges);
        block.entry_labels.resize(block.entries.n());
        for (std::int64_t k = 0; k < block.entries.n(); ++k)
            block.entry_labels[k] = layout.pair_labels[block.entries.ids[k]];
    });
    return blocks;
}

std::int64_t GroupedBlocks::most_active() const {
    if (most_active_) return *most_active_;
    std::int64_t highest = 0;
    for (Inverted Block::* lists : {&Block::rows, &Block::entries, &Block::arcs}) {
        std::int32_t largest = -1;
        for (const Block& block : blocks)
            for (const std::int32_t id : (block.*lists).ids) largest = std::max(largest, id);
        std::vector<std::int64_t> counts(static_cast<std::size_t>(largest) + 1);
        Pace pace;
        for (const Block& block : blocks) {
            const Inverted& here = block.*lists;
            pace.work(here.n());
            for (std::int64_t k = 0; k < here.n(); ++k) counts[here.ids[k]] += here.ptr[k + 1] - here.ptr[k];
        }
        for (const std::int64_t count : counts) highest = std::max(highest, count);
    }
    most_active_ = highest;
    return highest;
}

}  // namespace crfkit
