// A template run over many sequences of rows, on several threads: the ids of their features.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/extractor.hpp"
#include "text/feature_arrays.hpp"
#include "text/row_block.hpp"
#include "text/vocabulary.hpp"

namespace crfkit {

// Blocks come in their order, and ids do not depend on the number of threads. A vocabulary that grows is
// learned in parts: each thread numbers the names of some blocks by itself; the names are then added to the
// vocabulary block by block, in the order in which they first occur, as one thread would have done.
class RowExtraction {
  public:
    RowExtraction(Extractor& extractor, Vocabulary& states, Vocabulary& arcs, bool grow)
        : extractor_(extractor), states_(states), arcs_(arcs), grow_(grow) {}

    // Column columns()[k] of the extractor is column columns[k] of the blocks. Called without the
    // interpreter's lock; `apply` is called by several threads at once.
    void add(std::span<const RowBlock* const> blocks, std::span<const std::int32_t> columns,
             const ApplyTransform& apply, int n_threads);

    std::vector<std::int64_t> take_sequence_ptr() { return std::move(sequence_ptr_); }
    FeatureArrays take_states(int n_threads);
    FeatureArrays take_arcs(int n_threads);

  private:
    // Some consecutive blocks.
    struct Piece {
        std::int64_t first_block, last_block;  // the latter exclusive
        FeatureArrays states, arcs;
        Vocabulary own_states, own_arcs;  // where several threads grow the vocabularies
    };

    std::vector<Piece> cut(std::span<const RowBlock* const> blocks, bool own, int n_threads) const;
    void extract(Piece& piece, Vocabulary& states, Vocabulary& arcs, std::span<const RowBlock* const> blocks,
                 std::span<const std::int32_t> columns, const ApplyTransform& apply);
    void merge(std::vector<Piece>& pieces, int n_threads);

    Extractor& extractor_;
    Vocabulary &states_, &arcs_;
    bool grow_;
    std::vector<std::int64_t> sequence_ptr_{0};
    std::vector<FeatureArrays> all_states_, all_arcs_;
};

// Lists one after the other.
FeatureArrays joined(std::vector<FeatureArrays> parts, int n_threads);

}  // namespace crfkit
