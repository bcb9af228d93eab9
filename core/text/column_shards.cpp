#include "text/column_shards.hpp"

#include <utility>

namespace crfkit {

namespace {

constexpr std::size_t chunks_per_thread = 4;  // that are read side by side

// Takes the sequences from number n on out of a block; they keep their lines.
ColumnBlock cut_off(ColumnBlock& block, std::int64_t n) {
    RowBlock& rows = block.rows;
    const std::int64_t first = rows.sequence_ptr[n];
    const auto first_cell = rows.cells.begin() + first * static_cast<std::int64_t>(rows.n_columns);
    const std::uint32_t begin = first_cell->begin;  // of the bytes; a comment before it stays behind
    ColumnBlock rest;
    rest.first_line = block.first_line;
    rest.lines.assign(block.lines.begin() + first, block.lines.end());
    rest.rows.n_columns = rows.n_columns;
    rest.rows.bytes = rows.bytes.substr(begin);
    for (auto cell = first_cell; cell != rows.cells.end(); ++cell)
        rest.rows.cells.push_back({cell->begin - begin, cell->length});
    for (std::int64_t m = n + 1; m <= rows.n_sequences(); ++m)
        rest.rows.sequence_ptr.push_back(rows.sequence_ptr[m] - first);
    rows.cells.erase(first_cell, rows.cells.end());
    rows.sequence_ptr.resize(static_cast<std::size_t>(n) + 1);
    rows.bytes.resize(begin);
    block.lines.resize(static_cast<std::size_t>(first));
    return rest;
}

}  // namespace

void ColumnShards::add(std::string_view bytes) {
    if (failed_) return;
    cutter_.add(bytes);
    while (auto chunk = cutter_.take(column_chunk_size)) {
        chunks_.push_back(std::move(*chunk));
        if (chunks_.size() >= chunks_per_thread * static_cast<std::size_t>(n_threads_)) read_chunks();
        if (failed_) return;
    }
}

void ColumnShards::end() {
    cutter_.end();
    while (auto chunk = cutter_.take(column_chunk_size)) chunks_.push_back(std::move(*chunk));
    if (failed_) return;
    if (!form().is_fixed()) {
        failed_.emplace();
        for (const ColumnChunk& chunk : chunks_) failed_->bytes += chunk.bytes;
        return;
    }
    read_chunks();
    if (!failed_) close_shard();
}

void ColumnShards::read_chunks() {
    std::vector<ColumnChunk> chunks = std::exchange(chunks_, {});
    if (!form().is_fixed()) {  // no line was surely a row until now
        chunks_ = std::move(chunks);
        return;
    }
    std::optional<std::size_t> failed;
    std::vector<ColumnBlock> blocks = read_blocks(form(), std::move(chunks), n_threads_, failed);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        if (failed == b) {
            failed_ = ColumnChunk{std::move(blocks[b].rows.bytes), blocks[b].first_line};
            return;
        }
        place(std::move(blocks[b]));
    }
}

void ColumnShards::place(ColumnBlock block) {
    for (std::int64_t n = 0; n < block.rows.n_sequences(); ++n) {
        const std::int64_t length = block.rows.sequence_ptr[n + 1] - block.rows.sequence_ptr[n];
        if ((n > 0 || !open_.empty()) && filled_ + length > shard_size_) {
            ColumnBlock rest = cut_off(block, n);
            if (n > 0) open_.push_back(std::move(block));
            close_shard();
            block = std::move(rest);
            n = 0;
        }
        filled_ += length;
    }
    if (block.rows.n_sequences() > 0) open_.push_back(std::move(block));
}

void ColumnShards::close_shard() {
    if (!open_.empty()) complete_.push_back(std::exchange(open_, {}));
    filled_ = 0;
}

std::unique_ptr<ColumnRows> ColumnShards::take() {
    if (complete_.empty()) return nullptr;
    auto rows = std::make_unique<ColumnRows>(form(), std::move(complete_.front()));
    complete_.pop_front();
    return rows;
}

}  // namespace crfkit
