// One pass over a data set that is cut into blocks, each evaluated by one thread, in two halves:
//
//   1. sequence by sequence: scores → messages → losses, and residuals r = weight · (P − P_gold) of all
//   parts;
//      for Hessian–vector products how r changes along a direction
//   2. weight by weight: Φᵀ r
//
// A block is small enough that its residuals stay in the cache between the halves. Blocks are cut by the data
// alone, and their sums are added up in their order, or rounded so that any order gives the same sum. So
// results have the same bits for any number of threads, with one gradient in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/sum_grid.hpp"
#include "data/annotation.hpp"
#include "data/blocks.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"

namespace crfkit {

// Residuals of labels that come first, and last, in sequences.
struct Ends {
    std::vector<double> start, end;  // [L]
    void clear(std::int32_t n_labels) {
        start.assign(static_cast<std::size_t>(n_labels), 0.0);
        end = start;
    }
    void add(const Ends& other, SumGrid grid = {}) {
        for (std::size_t b = 0; b < start.size(); ++b) {
            start[b] += grid.round(other.start[b]);
            end[b] += grid.round(other.end[b]);
        }
    }
    // Rows [T, stride] of a sequence.
    template <class Real>
    void add_rows(const Real* residuals, std::int64_t n_positions, std::int64_t stride) {
        for (std::size_t b = 0; b < start.size(); ++b) {
            start[b] += residuals[b];
            end[b] += residuals[(n_positions - 1) * stride + static_cast<std::int64_t>(b)];
        }
    }
};

// What is evaluated must outlive it.
class DataEvaluator {
  public:
    virtual ~DataEvaluator() = default;

    // Fills out[D] with the gradient at w, and returns the value. With v, fills it with H·v instead, and what
    // is returned means nothing.
    virtual double evaluate(const double* w, const double* v, double* out, int n_threads) = 0;
    // Moves what `next` would make in the same way to it: memory, and with `same_question` what was made of w
    // and v, as it is asked with the same ones.
    virtual void hand_over(DataEvaluator& /*next*/, bool /*same_question*/) {}
    // After evaluate: the scores are too far apart for this precision, and what was returned means nothing.
    bool unsafe = false;

  protected:
    DataEvaluator(const Layout& layout, const Design& design, const Annotation& gold);

    // Σ_n losses_[n]
    double total_loss() const;
    // One workspace for each thread that may work on n_tasks tasks.
    template <class Workspace>
    static void reserve(std::vector<Workspace>& work, std::int64_t n_tasks, int n_threads) {
        const auto n =
            static_cast<std::size_t>(std::max<std::int64_t>(1, std::min<std::int64_t>(n_threads, n_tasks)));
        if (work.size() < n) work.resize(n);
    }

    const Layout& layout_;
    const Design& design_;
    const Annotation& gold_;
    bool hessian_vector_ = false;
    std::vector<double> losses_;  // [N] weight · (log Z − log Z_gold)
};

class BlockedEvaluator : public DataEvaluator {
  protected:
    using DataEvaluator::DataEvaluator;

    // Whether what blocks add up to has the same bits in any order: then a thread adds the sums of a block as
    // soon as it has them. It calls no `sum` and no `merge`, and has one slot.
    virtual bool adds_in_any_order() const { return false; }
    // Goes through the data once; weights and direction must have been read.
    double run_blocks(std::size_t n_blocks, double* out, int n_threads);

    // Allocates slots 0..n_slots−1, in which blocks are evaluated, and workspaces of n_workers threads.
    virtual void open(std::size_t n_slots, std::size_t n_workers) = 0;
    // The first half of one block, or both: all stays in the slot.
    virtual void run_block(std::size_t block, std::size_t slot, std::size_t worker) = 0;
    // The second half for one of kRanges ranges of weights, unless run_block has done it; stays in the slot.
    virtual void sum(std::size_t /*block*/, std::size_t /*slot*/, std::int64_t /*range*/) {}
    // Adds one range of what is summed up in a slot; start_ and end_ with range 0.
    virtual void merge(std::size_t block, std::size_t slot, std::int64_t range, double* out) = 0;
    // sum and merge at once, with the same bits.
    virtual void add(std::size_t block, std::size_t slot, std::int64_t range, double* out) {
        sum(block, slot, range);
        merge(block, slot, range, out);
    }
    // After all blocks: the weights of transitions, start and end.
    virtual void finish(double* out, int n_threads) = 0;

    Ends ends_;  // of all blocks
};

}  // namespace crfkit
