// The sequences of a column file in shards, cut as its bytes come: a shard ends before the sequence that it
// has no place for. The rule is that of crfkit.features.shards.
//
//     ColumnShards shards(form, shard_size, n_threads);
//     shards.add(bytes);                          // piece by piece
//     while (auto rows = shards.take()) …         // the shards that are complete
//     shards.end();                               // no more bytes: take() gives the rest
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "text/column_rows.hpp"

namespace crfkit {

class ColumnShards {
  public:
    ColumnShards(ColumnForm form, std::int64_t shard_size, int n_threads)
        : cutter_(std::move(form)), shard_size_(shard_size), n_threads_(n_threads) {}

    void add(std::string_view bytes);
    void end();
    // The next shard; nothing where it is not complete, or cannot be read.
    std::unique_ptr<ColumnRows> take();
    // The first part of the file that cannot be read; the shards before it are taken first. All of the file
    // where no line of it is a row.
    const std::optional<ColumnChunk>& failed() const { return failed_; }
    const ColumnForm& form() const { return cutter_.form(); }

  private:
    void read_chunks();
    void place(ColumnBlock block);
    void close_shard();

    ColumnCutter cutter_;
    std::int64_t shard_size_;
    int n_threads_;
    std::vector<ColumnChunk> chunks_;  // that are not read yet
    std::vector<ColumnBlock> open_;    // the blocks of the shard that is being filled
    std::int64_t filled_ = 0;          // its positions
    std::deque<std::vector<ColumnBlock>> complete_;
    std::optional<ColumnChunk> failed_;
};

}  // namespace crfkit
