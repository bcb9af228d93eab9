#include "base/range_locks.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "base/threads.hpp"

namespace crfkit {
namespace {

struct alignas(64) RangeLock {  // in a cache line of its own
    std::mutex mutex;
};

}  // namespace

void run_in_any_order(std::int64_t n_tasks, std::int64_t n_ranges, int n_threads,
                      const std::function<void(std::int64_t, int)>& run,
                      const std::function<void(std::int64_t, int, std::int64_t)>& add) {
    const std::unique_ptr<RangeLock[]> locks(new RangeLock[static_cast<std::size_t>(n_ranges)]);
    const std::int64_t n_workers = std::clamp<std::int64_t>(n_threads, 1, std::max<std::int64_t>(n_tasks, 1));
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int worker) {
        run(task, worker);
        const auto add_under = [&](std::unique_lock<std::mutex> lock, std::int64_t range) {
            if (lock) add(task, worker, range);
            return lock.owns_lock();
        };
        // Threads begin far from each other.
        const std::int64_t first = worker * n_ranges / n_workers;
        std::vector<std::int64_t> busy;
        for (std::int64_t i = 0; i < n_ranges; ++i) {
            const std::int64_t range = (first + i) % n_ranges;
            if (!add_under({locks[range].mutex, std::try_to_lock}, range)) busy.push_back(range);
        }
        while (!busy.empty()) {
            const auto added = std::erase_if(busy, [&](std::int64_t range) {
                return add_under({locks[range].mutex, std::try_to_lock}, range);
            });
            if (added > 0) continue;
            add_under(std::unique_lock(locks[busy.back()].mutex), busy.back());
            busy.pop_back();
        }
    });
}

}  // namespace crfkit
