#include "training/blocked_evaluator.hpp"

#include "base/subnormals.hpp"
#include "base/threads.hpp"

namespace crfkit {

BlockedEvaluator::BlockedEvaluator(const Layout& layout, const Design& design, const Annotation& gold)
    : layout_(layout),
      design_(design),
      gold_(gold),
      losses_(static_cast<std::size_t>(design.n_sequences())) {}

double BlockedEvaluator::run_blocks(std::size_t n_blocks, double* out, int n_threads) {
    start_.assign(static_cast<std::size_t>(layout_.n_labels), 0.0);
    end_ = start_;
    for (std::size_t block = 0; block < n_blocks; ++block) {
        parallel_for(open_block(block, n_threads), n_threads, [&](std::int64_t chunk, int worker) {
            const FlushSubnormals flush;
            run_chunk(block, chunk, worker);
        });
        collect(block);
        parallel_for(n_tasks(block), n_threads, [&](std::int64_t task, int) {
            const FlushSubnormals flush;
            gather(block, task, out);
        });
    }
    finish(out, n_threads);
    double value = 0;
    for (const double loss : losses_) value += loss;
    return value;
}

}  // namespace crfkit
