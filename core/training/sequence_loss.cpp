#include "training/sequence_loss.hpp"

#include <algorithm>

#include "base/interruption.hpp"
#include "base/threads.hpp"

namespace crfkit {

const std::vector<std::int64_t>& SequenceSource::residual_ptr(int n_threads) const {
    if (!residual_ptr_.empty()) return residual_ptr_;
    const std::int64_t n = n_sequences(), n_tasks = std::max(n_threads, 1);
    std::vector<std::int64_t> ptr(static_cast<std::size_t>(n + 1), 0);
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int) {
        const auto sequence = open();
        for (std::int64_t i = n * task / n_tasks; i < n * (task + 1) / n_tasks; ++i) {
            check_interruption();
            sequence->load(i);
            ptr[i + 1] = sequence->n_residuals();
        }
    });
    for (std::int64_t i = 0; i < n; ++i) ptr[i + 1] += ptr[i];
    return residual_ptr_ = std::move(ptr);
}

}  // namespace crfkit
