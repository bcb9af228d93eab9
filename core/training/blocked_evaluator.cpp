#include "training/blocked_evaluator.hpp"

#include <algorithm>

#include "base/ordered_merge.hpp"
#include "base/range_locks.hpp"
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
    const auto n = static_cast<std::int64_t>(n_blocks);
    const std::size_t n_workers = static_cast<std::size_t>(std::max(n_threads, 1));
    ends_.clear(layout_.n_labels);
    const auto run = [&](std::int64_t block, std::int64_t slot, int worker) {
        const FlushSubnormals flush;
        run_block(static_cast<std::size_t>(block), static_cast<std::size_t>(slot),
                  static_cast<std::size_t>(worker));
    };
    const auto flushed = [](const auto& function) {
        return [&function](std::int64_t block, std::int64_t slot, std::int64_t range) {
            const FlushSubnormals flush;
            function(static_cast<std::size_t>(block), static_cast<std::size_t>(slot), range);
        };
    };
    const auto sum_range = [&](std::size_t block, std::size_t slot, std::int64_t range) {
        sum(block, slot, range);
    };
    const auto merge_range = [&](std::size_t block, std::size_t slot, std::int64_t range) {
        merge(block, slot, range, out);
    };
    const auto add_range = [&](std::size_t block, std::size_t slot, std::int64_t range) {
        add(block, slot, range, out);
    };
    if (adds_in_any_order()) {
        open(std::min(n_workers, n_blocks), std::min(n_workers, n_blocks));
        run_in_any_order(
            n, kRanges, n_threads, [&](std::int64_t block, int worker) { run(block, worker, worker); },
            flushed(add_range));
    } else {
        open(static_cast<std::size_t>(most_slots(n, n_threads)),
             std::min(n_workers, std::max<std::size_t>(n_blocks, 1)));
        run_in_order(n, kRanges, n_threads,
                     {run, flushed(sum_range), flushed(merge_range), flushed(add_range)});
    }
    finish(out, n_threads);
    return total_loss();
}

}  // namespace crfkit
