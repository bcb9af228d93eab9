// Sequences of rows of strings in one piece of memory: what templates are run over, without a Python object
// per cell.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace crfkit {

// Position t has the cells (t, 0) … (t, n_columns − 1); sequence n has the positions sequence_ptr[n] …
// sequence_ptr[n + 1] − 1.
struct RowBlock {
    struct Place {
        std::uint32_t begin, length;
    };

    std::string bytes;
    std::vector<Place> cells;                   // [T, n_columns] where they lie in bytes
    std::vector<std::int64_t> sequence_ptr{0};  // [N + 1]
    std::size_t n_columns = 0;

    std::int64_t n_sequences() const { return static_cast<std::int64_t>(sequence_ptr.size()) - 1; }
    std::int64_t n_positions() const { return sequence_ptr.back(); }
    std::string_view cell(std::int64_t position, std::size_t column) const {
        const Place& place = cells[static_cast<std::size_t>(position) * n_columns + column];
        return {bytes.data() + place.begin, place.length};
    }
    // Refuses bytes that a Place cannot point into.
    static void check_size(std::size_t n_bytes) {
        if (n_bytes > std::numeric_limits<std::uint32_t>::max())
            throw std::length_error("the text of one sequence is larger than 4 GiB");
    }
};

// One sequence of a block; column k of the reader is column columns[k] of the block.
struct SequenceRows {
    const RowBlock& block;
    std::int64_t first;
    std::int64_t n_positions;
    std::span<const std::int32_t> columns;

    std::string_view cell(std::int64_t i, std::size_t k) const {
        return block.cell(first + i, static_cast<std::size_t>(columns[k]));
    }
};

}  // namespace crfkit
