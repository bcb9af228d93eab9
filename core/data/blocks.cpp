#include "data/blocks.hpp"

#include <algorithm>

#include "base/threads.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kBlockBytes = 2 << 20;    // of residuals, counted in single precision
constexpr std::int64_t kOwnArcBytes = 16 << 20;  // of residuals of arcs that belong to one position
constexpr std::int64_t kPairBytes = 64 << 20;    // of arc expectations, one table per chunk
constexpr std::int64_t kTermsPerTask = 1 << 14;  // additions in one task of the second half

std::int64_t own_arc_positions(const Design& design, std::int64_t first, std::int64_t last) {
    std::int64_t n = 0;
    if (design.arcs.ptr.size() > 0)
        for (std::int64_t t = first; t < last; ++t) n += design.arcs.ptr[t + 1] > design.arcs.ptr[t];
    return n;
}

void add_tasks(const Inverted& lists, Gather kind, std::vector<GatherTask>& tasks) {
    const std::vector<std::int64_t> cuts = cut_lists(lists, kTermsPerTask);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) tasks.push_back({kind, 0, cuts[i], cuts[i + 1]});
}

void fill(const Layout& layout, const Design& design, Block& block) {
    std::vector<std::int32_t> scratch(std::max({layout.row_features.size(), layout.pair_labels.size(),
                                                static_cast<std::size_t>(layout.n_arc_features())}),
                                      0);
    block.rows = invert(design.rows, block.first_position, block.last_position, scratch);
    block.entries = invert(design.entries, block.first_position, block.last_position, scratch);
    for (std::int64_t i = 0; i < block.entries.n(); ++i)
        block.entry_labels.push_back(layout.pair_labels[block.entries.ids[i]]);
    add_tasks(block.rows, Gather::rows, block.tasks);
    add_tasks(block.entries, Gather::entries, block.tasks);
    for (std::size_t k = 0; k < layout.dense_columns.size(); ++k)
        for (std::int64_t c = 0; c < layout.dense_columns[k]; c += 16)
            block.tasks.push_back({Gather::dense, k, c, std::min(layout.dense_columns[k], c + 16)});
    if (design.arcs.ptr.size() == 0) return;
    block.own.assign(static_cast<std::size_t>(block.last_position - block.first_position), -1);
    for (std::int64_t t = block.first_position; t < block.last_position; ++t)
        if (design.arcs.ptr[t + 1] > design.arcs.ptr[t])
            block.own[t - block.first_position] = static_cast<std::int32_t>(block.n_own++);
    block.arcs = invert(design.arcs, block.first_position, block.last_position, scratch);
    for (std::int32_t& position : block.arcs.positions) position = block.own[position];
    add_tasks(block.arcs, Gather::arcs, block.tasks);
}

}  // namespace

std::vector<std::int64_t> cut_lists(const Inverted& lists, std::int64_t least_terms) {
    std::vector<std::int64_t> cuts{0};
    for (std::int64_t i = 1; i <= lists.n(); ++i)
        if (i == lists.n() || lists.ptr[i] - lists.ptr[cuts.back()] >= least_terms) cuts.push_back(i);
    return cuts;
}

std::vector<std::int64_t> cut_evenly(const Design& design, std::int64_t first, std::int64_t last,
                                     std::int64_t n_chunks) {
    const std::int64_t n_positions = design.sequence_ptr[last] - design.sequence_ptr[first];
    const std::int64_t size = std::max<std::int64_t>(1, (n_positions + n_chunks - 1) / n_chunks);
    std::vector<std::int64_t> cuts{first};
    for (std::int64_t n = first + 1; n <= last; ++n)
        if (n == last || design.sequence_ptr[n] - design.sequence_ptr[cuts.back()] >= size) cuts.push_back(n);
    return cuts;
}

std::vector<Block> cut_into_blocks(const Layout& layout, const Design& design, int n_threads) {
    const std::int64_t L = layout.n_labels, row = (L + 15) / 16 * 16;
    const std::int64_t most_positions = std::max<std::int64_t>(4096, kBlockBytes / (row * 4));
    const std::int64_t most_own = std::max<std::int64_t>(16, kOwnArcBytes / (L * row * 4));
    const std::int64_t n_chunks = std::clamp<std::int64_t>(kPairBytes / (row * row * 4), 2, 16);
    std::vector<Block> blocks;
    for (std::int64_t first = 0; first < design.n_sequences();) {
        std::int64_t last = first, own = 0;
        while (last < design.n_sequences()) {
            own += own_arc_positions(design, design.sequence_ptr[last], design.sequence_ptr[last + 1]);
            const bool full =
                design.sequence_ptr[last + 1] - design.sequence_ptr[first] > most_positions || own > most_own;
            if (full && last > first) break;
            ++last;
            if (full) break;
        }
        Block block;
        block.first_position = design.sequence_ptr[first];
        block.last_position = design.sequence_ptr[last];
        block.chunks = cut_evenly(design, first, last, n_chunks);
        blocks.push_back(std::move(block));
        first = last;
    }
    parallel_for(static_cast<std::int64_t>(blocks.size()), n_threads,
                 [&](std::int64_t i, int) { fill(layout, design, blocks[i]); });
    return blocks;
}

}  // namespace crfkit
