// Tasks in parallel that add to one total, in any order.
//
// What a task adds is cut into ranges, each with a lock. A thread that finds a range locked goes on with the
// others first, so that it hardly ever waits. This is for sums that have the same bits in any order
// (sum_grid.hpp); others are merged in order (ordered_merge.hpp).
#pragma once

#include <cstdint>
#include <functional>

namespace crfkit {

// Runs tasks 0..n_tasks−1 on at most n_threads threads: run(task, worker), then add(task, worker, range) for
// all ranges, one thread at a time in each. An exception of a task is thrown again here.
void run_in_any_order(std::int64_t n_tasks, std::int64_t n_ranges, int n_threads,
                      const std::function<void(std::int64_t task, int worker)>& run,
                      const std::function<void(std::int64_t task, int worker, std::int64_t range)>& add);

}  // namespace crfkit
