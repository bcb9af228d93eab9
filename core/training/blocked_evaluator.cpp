#include "training/blocked_evaluator.hpp"

#include <algorithm>

#include "base/ordered_merge.hpp"
#include "base/subnormals.hpp"

namespace crfkit {

DataEvaluator::DataEvaluator(const Layout& layout, const Design& design, const Annotation& gold)
    : layout_(layout),
      design_(design),
      gold_(gold),
      losses_(static_cast<std::size_t>(design.n_sequences())) {}

double DataEvaluator::total_loss() const {
    double value = 0;
    for (const double loss : losses_) value += loss;
    return value;
}

double BlockedEvaluator::run_blocks(std::size_t n_blocks, double* out, int n_threads) {
    ends_.clear(layout_.n_labels);
    open(static_cast<std::size_t>(most_slots(static_cast<std::int64_t>(n_blocks), n_threads)),
         std::clamp<std::size_t>(static_cast<std::size_t>(std::max(n_threads, 1)), 1,
                                 std::max<std::size_t>(n_blocks, 1)));
    run_in_order(static_cast<std::int64_t>(n_blocks), kRanges, n_threads,
                 {[&](std::int64_t block, std::int64_t slot, int worker) {
                      const FlushSubnormals flush;
                      run_block(static_cast<std::size_t>(block), static_cast<std::size_t>(slot),
                                static_cast<std::size_t>(worker));
                  },
                  [&](std::int64_t block, std::int64_t slot, std::int64_t range) {
                      const FlushSubnormals flush;
                      sum(static_cast<std::size_t>(block), static_cast<std::size_t>(slot), range);
                  },
                  [&](std::int64_t block, std::int64_t slot, std::int64_t range) {
                      const FlushSubnormals flush;
                      merge(static_cast<std::size_t>(block), static_cast<std::size_t>(slot), range, out);
                  },
                  [&](std::int64_t block, std::int64_t slot, std::int64_t range) {
                      const FlushSubnormals flush;
                      add(static_cast<std::size_t>(block), static_cast<std::size_t>(slot), range, out);
                  }});
    finish(out, n_threads);
    return total_loss();
}

}  // namespace crfkit
