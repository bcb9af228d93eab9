// Tasks in parallel, sums in order.
//
// A task writes its sums to a slot, a set of buffers that belongs to it until they are merged. Slots are
// merged into the total in the order of the tasks, so results have the same bits for any number of threads.
// What is summed is cut into ranges, which are merged independently of each other: a thread that has finished
// a task merges every range that no other thread is busy with, as far as tasks are finished without a gap. So
// no thread waits for another one before all tasks are done. Where all earlier tasks are merged already, as
// always on one thread, sums go straight to the total.
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

// Runs tasks 0..n_tasks−1 on at most n_threads threads. Slots are numbered from 0; there are at most n_tasks,
// and hardly more than twice as many as threads are in use. An exception of a task is thrown again here.
void run_in_order(std::int64_t n_tasks, std::int64_t n_ranges, int n_threads, const OrderedTasks& tasks);

}  // namespace crfkit
