// Tasks in parallel, sums in order.
//
// A task writes its sums to a slot, a set of buffers that belongs to it until they are merged. Slots are
// merged into the total in the order of the tasks, so results have the same bits for any number of threads.
// What is summed is cut into ranges, which are merged independently of each other. Each thread has ranges of
// its own, whose totals stay in its cache: when it has finished a task it merges these, as far as tasks are
// finished without a gap. When tasks run out, or slots, it merges every range that no other thread is busy
// with. So no thread waits for another one before all tasks are done. Where all earlier tasks are merged
// already, as always on one thread, sums go straight to the total. A thread uses its own slots again.
#pragma once

#include <cstdint>
#include <functional>

namespace crfkit {

struct OrderedTasks {
    using RangeFunction = std::function<void(std::int64_t task, std::int64_t slot, std::int64_t range)>;
    // Does a task up to its sums; writes to the slot alone.
    std::function<void(std::int64_t task, std::int64_t slot, int worker)> run;
    // Sums up one range; writes to the slot alone.
    RangeFunction sum;
    // Adds one range of a task's sums to the total.
    RangeFunction merge;
    // The same as sum and merge, with the same bits.
    RangeFunction add;
};

// How many slots a run may use; hardly more than three times as many as there are threads are in use at once.
std::int64_t most_slots(std::int64_t n_tasks, int n_threads);

// Runs tasks 0..n_tasks−1 on at most n_threads threads. An exception of a task is thrown again here.
void run_in_order(std::int64_t n_tasks, std::int64_t n_ranges, int n_threads, const OrderedTasks& tasks);

}  // namespace crfkit
