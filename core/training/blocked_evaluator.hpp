// One pass over a data set that is cut into blocks, in two halves for each:
//
//   1. sequence by sequence: scores → messages → losses, and residuals r = weight · (P − P_gold) of all
//   parts;
//      for Hessian–vector products how r changes along a direction
//   2. weight by weight: Φᵀ r
//
// A block is small enough that its residuals stay in the cache between the halves. Sequences are cut into
// chunks by the data alone, a chunk writes to places of its own, and these are added up in the order of the
// chunks; in the second half every weight belongs to one task. So results have the same bits for any number
// of threads, with one gradient in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/annotation.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"

namespace crfkit {

// What is evaluated must outlive it.
class BlockedEvaluator {
  public:
    virtual ~BlockedEvaluator() = default;

    // Fills out[D] with the gradient at w, and returns the value. With v, fills it with H·v instead, and what
    // is returned means nothing.
    virtual double evaluate(const double* w, const double* v, double* out, int n_threads) = 0;
    // After evaluate: the scores are too far apart for this precision, and what was returned means nothing.
    bool unsafe = false;

  protected:
    BlockedEvaluator(const Layout& layout, const Design& design, const Annotation& gold);

    // Goes through the data once; weights and direction must have been read.
    double run_blocks(std::size_t n_blocks, double* out, int n_threads);

    // Allocates what a block needs. Returns how many chunks it has.
    virtual std::int64_t open_block(std::size_t block, int n_threads) = 0;
    virtual void run_chunk(std::size_t block, std::int64_t chunk, int worker) = 0;
    // After the first half: adds up what the chunks have summed, in their order, and start_ and end_.
    virtual void collect(std::size_t block) = 0;
    virtual std::int64_t n_tasks(std::size_t block) const = 0;
    // Adds Φᵀ r of the weights of one task.
    virtual void gather(std::size_t block, std::int64_t task, double* out) = 0;
    // After all blocks: the weights of transitions, start and end.
    virtual void finish(double* out, int n_threads) = 0;

    // start_ and end_ += residuals [positions, stride] of the first and last position of each of the
    // sequences first..last−1, in their order.
    template <class Real>
    void add_ends(std::int64_t first, std::int64_t last, const Real* residuals, std::int64_t first_position,
                  std::int64_t stride) {
        for (std::int64_t n = first; n < last; ++n) {
            const std::int64_t begin = design_.sequence_ptr[n], end = design_.sequence_ptr[n + 1];
            if (begin == end) continue;
            for (std::int32_t b = 0; b < layout_.n_labels; ++b) {
                start_[b] += residuals[(begin - first_position) * stride + b];
                end_[b] += residuals[(end - 1 - first_position) * stride + b];
            }
        }
    }
    // One workspace for each thread that may work on n_chunks chunks.
    template <class Workspace>
    static void reserve(std::vector<Workspace>& work, std::int64_t n_chunks, int n_threads) {
        const auto n =
            static_cast<std::size_t>(std::max<std::int64_t>(1, std::min<std::int64_t>(n_threads, n_chunks)));
        if (work.size() < n) work.resize(n);
    }

    const Layout& layout_;
    const Design& design_;
    const Annotation& gold_;
    bool hessian_vector_ = false;
    std::vector<double> losses_;       // [N] weight · (log Z − log Z_gold)
    std::vector<double> start_, end_;  // [L] residuals of labels that come first, and last
};

}  // namespace crfkit
