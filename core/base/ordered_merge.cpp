#include "base/ordered_merge.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <vector>

#include "base/threads.hpp"

namespace crfkit {
namespace {

constexpr int kOwnSlots = 2;  // that a thread has in every run, so that it finds them in its cache

std::int64_t n_workers(std::int64_t n_tasks, int n_threads) {
    return std::clamp<std::int64_t>(n_threads, 1, std::max<std::int64_t>(n_tasks, 1));
}

class Merge {
  public:
    Merge(std::int64_t n_tasks, std::int64_t n_ranges, int n_threads, const OrderedTasks& tasks)
        : n_tasks_(n_tasks),
          n_ranges_(n_ranges),
          n_workers_(n_workers(n_tasks, n_threads)),
          tasks_(tasks),
          finished_(new Finished[static_cast<std::size_t>(n_tasks)]),
          ranges_(new Range[static_cast<std::size_t>(n_ranges)]),
          free_slots_(static_cast<std::size_t>(n_workers_)) {
        for (int i = 0; i < kOwnSlots; ++i)
            for (int worker = 0; worker < n_workers_; ++worker) {
                free_slots_[static_cast<std::size_t>(worker)].push_back(std::ssize(user_of_));
                user_of_.push_back(worker);
            }
    }

    void run(std::int64_t task, int worker) {
        const std::int64_t slot = take_slot(worker);
        tasks_.run(task, slot, worker);
        std::int64_t n_left = n_ranges_;
        for (std::int64_t range = 0; range < n_ranges_; ++range) {
            if (range % n_workers_ == worker)
                n_left -= sum_or_add(task, slot, range);
            else
                tasks_.sum(task, slot, range);
        }
        if (n_left == 0) {
            give_back(slot);
        } else {
            finished_[task].n_left.store(n_left, std::memory_order_relaxed);
            finished_[task].slot.store(slot, std::memory_order_release);
        }
        // Its own ranges are merged up to this task, unless earlier ones are missing.
        if (task < n_tasks_ - n_workers_ && n_used_.load(std::memory_order_relaxed) <= 3 * n_workers_) return;
        for (std::int64_t i = 0; i < n_ranges_; ++i) {
            Range& range = ranges_[(task + i) % n_ranges_];
            if (std::unique_lock lock(range.mutex, std::try_to_lock); lock)
                merge(range, (task + i) % n_ranges_);
        }
    }

    // The ranges that are not merged completely, when all tasks are finished.
    std::vector<std::int64_t> open_ranges() const {
        std::vector<std::int64_t> open;
        for (std::int64_t range = 0; range < n_ranges_; ++range)
            if (ranges_[range].next < n_tasks_) open.push_back(range);
        return open;
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

    // A slot that the worker has used before, whose memory may still be in its cache, or a new one.
    std::int64_t take_slot(int worker) {
        std::lock_guard lock(slots_mutex_);
        n_used_.fetch_add(1, std::memory_order_relaxed);
        std::vector<std::int64_t>& free = free_slots_[static_cast<std::size_t>(worker)];
        if (free.empty()) {
            user_of_.push_back(worker);
            return std::ssize(user_of_) - 1;
        }
        const std::int64_t slot = free.back();
        free.pop_back();
        return slot;
    }

    void give_back(std::int64_t slot) {
        std::lock_guard lock(slots_mutex_);
        n_used_.fetch_sub(1, std::memory_order_relaxed);
        free_slots_[static_cast<std::size_t>(user_of_[static_cast<std::size_t>(slot)])].push_back(slot);
    }

    const std::int64_t n_tasks_, n_ranges_, n_workers_;
    const OrderedTasks& tasks_;
    const std::unique_ptr<Finished[]> finished_;
    const std::unique_ptr<Range[]> ranges_;
    std::mutex slots_mutex_;
    std::vector<std::vector<std::int64_t>> free_slots_;  // [workers] of each
    std::vector<int> user_of_;                           // [slots] the worker
    std::atomic<std::int64_t> n_used_{0};                // slots
};

}  // namespace

std::int64_t most_slots(std::int64_t n_tasks, int n_threads) {
    return n_tasks + kOwnSlots * n_workers(n_tasks, n_threads);
}

void run_in_order(std::int64_t n_tasks, std::int64_t n_ranges, int n_threads, const OrderedTasks& tasks) {
    Merge merge(n_tasks, n_ranges, n_threads, tasks);
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int worker) { merge.run(task, worker); });
    const std::vector<std::int64_t> open = merge.open_ranges();
    parallel_for(static_cast<std::int64_t>(open.size()), n_threads,
                 [&](std::int64_t i, int) { merge.finish(open[static_cast<std::size_t>(i)]); });
}

}  // namespace crfkit
