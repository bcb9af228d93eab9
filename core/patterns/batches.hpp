// The sequences of a data set of trellises in batches that share one, and what their annotation says about
// the arcs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/annotation.hpp"
#include "data/blocks.hpp"
#include "patterns/trellis.hpp"

namespace crfkit {

// Depends on the data alone.
class PatternBatches {
  public:
    // `blocks` of the same data set. Throws std::invalid_argument, naming the sequence, where its labels do
    // not exist.
    PatternBatches(const Trellises& trellises, const Annotation& gold, const std::vector<Block>& blocks);

    std::int64_t n_chunks() const { return n_chunks_; }
    // Batches first..last−1 of a block belong to one of its chunks.
    std::pair<std::int64_t, std::int64_t> chunk(std::size_t block, std::int64_t chunk) const {
        const std::int64_t first = block_ptr_[block], n = block_ptr_[block + 1] - first;
        return {first + n * chunk / n_chunks_, first + n * (chunk + 1) / n_chunks_};
    }
    // The sequences of a batch, all of one trellis and none of them empty; at most kMostSequences.
    std::span<const std::int32_t> sequences(std::int64_t batch) const {
        return std::span(sequences_).subspan(batch_ptr_[batch], batch_ptr_[batch + 1] - batch_ptr_[batch]);
    }
    // Σ of the weights of the completely labelled sequences that take each arc of the step table, silent ones
    // left out.
    std::span<const double> gold_arcs() const { return gold_arcs_; }

    static constexpr std::int64_t kMostSequences = 16;

  private:
    void add_gold(const Trellises& trellises, const Annotation& gold, std::int64_t n);

    std::int64_t n_chunks_ = 1;
    std::vector<std::int64_t> block_ptr_{0};  // [blocks + 1] batches of each block
    std::vector<std::int64_t> batch_ptr_{0};  // [batches + 1]
    std::vector<std::int32_t> sequences_;
    std::vector<double> gold_arcs_;
};

}  // namespace crfkit
