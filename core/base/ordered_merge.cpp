#include "base/ordered_merge.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/threads.hpp"

namespace crfkit {
namespace {

class Merge {
  public:
    Merge(std::int64_t n_tasks, std::int64_t n_ranges, const OrderedTasks& tasks)
        : n_tasks_(n_tasks),
          n_ranges_(n_ranges),
          tasks_(tasks),
          finished_(new Finished[static_cast<std::size_t>(n_tasks)]),
          ranges_(new Range[static_cast<std::size_t>(n_ranges)]) {}

    void run(std::int64_t task, int worker) {
        const std::int64_t slot = take_slot();
        tasks_.run(task, slot, worker);
        std::int64_t n_left = n_ranges_;
        for (std::int64_t i = 0; i < n_ranges_; ++i) n_left -= sum_or_add(task, slot, (task + i) % n_ranges_);
        if (n_left == 0) {
            give_back(slot);
        } else {
            finished_[task].n_left.store(n_left, std::memory_order_relaxed);
            finished_[task].slot.store(slot, std::memory_order_release);
        }
        for (std::int64_t i = 0; i < n_ranges_; ++i) {
            Range& range = ranges_[(task + i) % n_ranges_];
            if (std::unique_lock lock(range.mutex, std::try_to_lock); lock)
                merge(range, (task + i) % n_ranges_);
        }
    }

    // What is left of a range when all tasks are finished.
    void finish(std::int64_t range) { merge(ranges_[range], range); }

  private:
    struct Finished {
        std::atomic<std::int64_t> slot{-1};   // where the sums are, from when the task is finished on
        std::atomic<std::int64_t> n_left{0};  // ranges still to be merged
    };
    struct Range {
        std::mutex mutex;
        std::int64_t next = 0;  // the task whose sums come next
    };

    // Returns whether the sums of a range are in the total already.
    bool sum_or_add(std::int64_t task, std::int64_t slot, std::int64_t number) {
        Range& range = ranges_[number];
        if (std::unique_lock lock(range.mutex, std::try_to_lock); lock) {
            merge(range, number);
            if (range.next == task) {
                tasks_.add(task, slot, number);
                ++range.next;
                return true;
            }
        }
        tasks_.sum(task, slot, number);
        return false;
    }

    void merge(Range& range, std::int64_t number) {
        for (; range.next < n_tasks_; ++range.next) {
            Finished& finished = finished_[range.next];
            const std::int64_t slot = finished.slot.load(std::memory_order_acquire);
            if (slot < 0) return;
            tasks_.merge(range.next, slot, number);
            if (finished.n_left.fetch_sub(1, std::memory_order_acq_rel) == 1) give_back(slot);
        }
    }

    std::int64_t take_slot() {
        std::lock_guard lock(slots_mutex_);
        if (free_slots_.empty()) return n_slots_++;
        const std::int64_t slot = free_slots_.back();
        free_slots_.pop_back();
        return slot;
    }

    void give_back(std::int64_t slot) {
        std::lock_guard lock(slots_mutex_);
        free_slots_.push_back(slot);
    }

    const std::int64_t n_tasks_, n_ranges_;
    const OrderedTasks& tasks_;
    const std::unique_ptr<Finished[]> finished_;
    const std::unique_ptr<Range[]> ranges_;
    std::mutex slots_mutex_;
    std::vector<std::int64_t> free_slots_;
    std::int64_t n_slots_ = 0;
};

}  // namespace

void run_in_order(std::int64_t n_tasks, std::int64_t n_ranges, int n_threads, const OrderedTasks& tasks) {
    Merge merge(n_tasks, n_ranges, tasks);
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int worker) { merge.run(task, worker); });
    parallel_for(n_ranges, n_threads, [&](std::int64_t range, int) { merge.finish(range); });
}

}  // namespace crfkit
