// The rows of a whole column file, as they stand in its blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/column_reader.hpp"

namespace crfkit {

inline constexpr std::size_t column_chunk_size = std::size_t{1} << 17;  // bytes

// Reads chunks side by side, without their comments. The number of the first one that cannot be read is in
// `failed`: its block has its bytes and first line alone.
std::vector<ColumnBlock> read_blocks(const ColumnForm& form, std::vector<ColumnChunk> chunks, int n_threads,
                                     std::optional<std::size_t>& failed);

class ColumnRows {
  public:
    // Of blocks that were read with this form.
    ColumnRows(ColumnForm form, std::vector<ColumnBlock> blocks);

    const ColumnForm& form() const { return form_; }
    std::int64_t n_sequences() const { return first_sequence_.back(); }
    std::int64_t n_positions() const { return n_positions_; }
    const std::vector<ColumnBlock>& blocks() const { return blocks_; }
    std::vector<const RowBlock*> row_blocks() const;

    // The block that sequence n is in, and its number there.
    std::pair<const ColumnBlock*, std::int64_t> locate(std::int64_t n) const;
    // The line that position i of sequence n stands on.
    std::int64_t line(std::int64_t n, std::int64_t i) const;

  private:
    ColumnForm form_;
    std::vector<ColumnBlock> blocks_;
    std::vector<std::int64_t> first_sequence_{0};  // [blocks + 1]
    std::int64_t n_positions_ = 0;
};

}  // namespace crfkit
