#include "text/column_rows.hpp"

#include <algorithm>
#include <stdexcept>

#include "base/threads.hpp"

namespace crfkit {

std::vector<ColumnBlock> read_blocks(const ColumnForm& form, std::vector<ColumnChunk> chunks, int n_threads,
                                     std::optional<std::size_t>& failed) {
    std::vector<ColumnBlock> blocks(chunks.size());
    std::vector<char> unreadable(chunks.size());
    parallel_for(static_cast<std::int64_t>(chunks.size()), n_threads, [&](std::int64_t n, int) {
        try {
            blocks[n] = read_block(chunks[n], form);
        } catch (const ColumnError&) {
            unreadable[n] = true;
            blocks[n].rows.bytes = std::move(chunks[n].bytes);
            blocks[n].first_line = chunks[n].first_line;
        }
        blocks[n].comments = {};
        blocks[n].rows.cells.shrink_to_fit();
        blocks[n].lines.shrink_to_fit();
    });
    const auto first = std::find(unreadable.begin(), unreadable.end(), true);
    if (first != unreadable.end()) failed = static_cast<std::size_t>(first - unreadable.begin());
    return blocks;
}

ColumnRows::ColumnRows(ColumnForm form, std::vector<ColumnBlock> blocks)
    : form_(std::move(form)), blocks_(std::move(blocks)) {
    for (const ColumnBlock& block : blocks_) {
        first_sequence_.push_back(n_sequences() + block.rows.n_sequences());
        n_positions_ += block.rows.n_positions();
    }
}

std::vector<const RowBlock*> ColumnRows::row_blocks() const {
    std::vector<const RowBlock*> rows;
    for (const ColumnBlock& block : blocks_) rows.push_back(&block.rows);
    return rows;
}

std::pair<const ColumnBlock*, std::int64_t> ColumnRows::locate(std::int64_t n) const {
    if (n < 0 || n >= n_sequences()) throw std::out_of_range("there is no such sequence");
    const auto after = std::upper_bound(first_sequence_.begin(), first_sequence_.end(), n);
    const auto block = static_cast<std::size_t>(after - first_sequence_.begin()) - 1;
    return {&blocks_[block], n - first_sequence_[block]};
}

std::int64_t ColumnRows::line(std::int64_t n, std::int64_t i) const {
    const auto [block, m] = locate(n);
    const std::int64_t position = block->rows.sequence_ptr[m] + i;
    if (i < 0 || position >= block->rows.sequence_ptr[m + 1])
        throw std::out_of_range("there is no such position");
    return block->first_line + block->lines[position];
}

}  // namespace crfkit
