// A small pool of threads that sleep while there is nothing to do, and before that look for the next job for
// a few microseconds, as jobs often follow each other.
//
// Determinism rule of the whole core: which thread runs a task never changes a result. Tasks write to places
// that belong to them alone; whatever is summed over tasks is summed in task order, or in sums that have the
// same bits in any order (sum_grid.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace crfkit {

// Runs task(i, worker) for i = 0..n_tasks-1, each exactly once, on at most n_threads threads; the caller is
// worker 0 and works too. Blocks until all are done. The first exception thrown by a task is thrown again
// here. Not re-entrant from inside a task: a nested call runs its tasks one after the other on the calling
// thread.
void parallel_for(std::int64_t n_tasks, int n_threads,
                  const std::function<void(std::int64_t task, int worker)>& task);

// The same for a caller that holds a lock which other threads may ask for at any time, such as that of the
// interpreter: it does not wait for a pool that works for somebody else, who may wait for this lock, but runs
// all tasks itself then. Nothing interrupts it.
void parallel_for_under_lock(std::int64_t n_tasks, int n_threads,
                             const std::function<void(std::int64_t task, int worker)>& task);

// Fills numbers, in pieces: tables may be so large that to write all of them at once would hold up an
// interruption, and memory that is touched for the first time costs more than what is done with it later.
template <class Number>
void fill_all(Number* numbers, std::int64_t n, Number value, int n_threads) {
    constexpr std::int64_t piece = std::int64_t(1) << 14;
    parallel_for((n + piece - 1) / piece, n_threads, [=](std::int64_t i, int) {
        std::fill(numbers + i * piece, numbers + std::min(n, (i + 1) * piece), value);
    });
}

}  // namespace crfkit
