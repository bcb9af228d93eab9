#include "base/threads.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/forks.hpp"
#include "base/interruption.hpp"

namespace crfkit {
namespace {

// One call of parallel_for: shared by the caller and the helpers that join it.
struct Job {
    const std::function<void(std::int64_t, int)>* task;
    std::int64_t n_tasks;
    Watch* watch = current_watch();  // of the caller
    std::atomic<std::int64_t> next{0};
    std::exception_ptr error;
    std::mutex error_mutex;

    void work(int worker) {
        const UnderWatch under(watch);
        for (;;) {
            const std::int64_t i = next.fetch_add(1);
            if (i >= n_tasks) return;
            try {
                check_interruption();
                (*task)(i, worker);
            } catch (...) {
                std::lock_guard lock(error_mutex);
                if (!error) error = std::current_exception();
                next.store(n_tasks);
            }
        }
    }
};

thread_local bool inside_a_task = false;

class Pool {
  public:
    explicit Pool(std::uint64_t process) : process(process) {}

    void run(Job& job, int n_threads) {
        std::unique_lock one_job_at_a_time(run_mutex_, std::defer_lock);
        while (!one_job_at_a_time.try_lock_for(kBetweenLooks)) check_interruption();
        share(job, n_threads);
    }

    // False if the pool works for somebody else: then nothing has been done.
    bool try_to_run(Job& job, int n_threads) {
        const std::unique_lock one_job_at_a_time(run_mutex_, std::try_to_lock);
        if (one_job_at_a_time) share(job, n_threads);
        return one_job_at_a_time.owns_lock();
    }

    const std::uint64_t process;  // that its threads are in

  private:
    // With run_mutex_.
    void share(Job& job, int n_threads) {
        const int n_helpers = std::min(n_threads - 1, grow(std::min(n_threads, kMostHelpers) - 1));
        job_ = &job;
        n_busy_.store(n_helpers, std::memory_order_relaxed);
        const Call last = call_.load(std::memory_order_relaxed);
        call_.store((last / kMostHelpers + 1) * kMostHelpers + static_cast<Call>(n_helpers),
                    std::memory_order_release);
        call_.notify_all();
        inside_a_task = true;
        job.work(0);
        std::unique_lock lock(mutex_);
        const auto is_done = [this] { return n_busy_.load(std::memory_order_acquire) == 0; };
        while (!done_.wait_for(lock, kBetweenLooks, is_done)) {
            if (!job.watch) continue;
            lock.unlock();
            job.watch->ask();
            lock.lock();
        }
        job_ = nullptr;
        inside_a_task = false;
    }

    // Starts helpers until there are n, or as many as the system gives: fewer of them do the same work.
    // Returns how many there are.
    int grow(int n) {
        const auto count = [this] { return static_cast<int>(threads_.size()); };
        try {
            while (count() < n) threads_.emplace_back([this, worker = count() + 1] { serve(worker); });
        } catch (const std::system_error&) {
        }
        return count();
    }

    void serve(int worker) {
        inside_a_task = true;
        for (Call seen = 0;;) {
            call_.wait(seen, std::memory_order_acquire);
            seen = call_.load(std::memory_order_acquire);
            if (static_cast<Call>(worker) > seen % kMostHelpers) continue;
            job_->work(worker);
            if (n_busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                std::lock_guard lock(mutex_);  // the caller has looked and sleeps, or has not looked yet
                done_.notify_one();
            }
        }
    }

    // A number for each job, times kMostHelpers, and how many helpers it wants: in one word, which helpers
    // sleep on, so that all of them wake without a mutex that each would have to take in turn.
    using Call = std::uint32_t;
    static constexpr int kMostHelpers = 1024;

    std::timed_mutex run_mutex_;
    std::mutex mutex_;
    std::condition_variable done_;
    std::vector<std::thread> threads_;
    Job* job_ = nullptr;
    std::atomic<int> n_busy_{0};
    std::atomic<Call> call_{0};
};

// The pool lives as long as the process and is never destroyed (its threads sleep when Python exits). A child
// made by fork() has none of the threads, and what their mutexes were doing is unknown there: it gets a pool
// of its own, and it waits for none.
Pool& pool() {
    static std::atomic<Pool*> current{nullptr};
    Pool* found = current.load(std::memory_order_acquire);
    if (found && found->process == process_number()) return *found;
    auto fresh = std::make_unique<Pool>(process_number());
    if (current.compare_exchange_strong(found, fresh.get(), std::memory_order_acq_rel))
        return *fresh.release();
    return *found;  // another thread was faster
}

}  // namespace

namespace {

void work_alone(Job& job) {
    const bool outer = inside_a_task;
    inside_a_task = true;
    job.work(0);
    inside_a_task = outer;
}

}  // namespace

void parallel_for(std::int64_t n_tasks, int n_threads, const std::function<void(std::int64_t, int)>& task) {
    if (n_threads > n_tasks) n_threads = static_cast<int>(n_tasks);
    Job job;
    job.task = &task;
    job.n_tasks = n_tasks;
    if (n_threads <= 1 || inside_a_task)
        work_alone(job);
    else
        pool().run(job, n_threads);
    if (job.watch && job.watch->is_stopped()) check_interruption();
    if (job.error) std::rethrow_exception(job.error);
}

void parallel_for_under_lock(std::int64_t n_tasks, int n_threads,
                             const std::function<void(std::int64_t, int)>& task) {
    const UnderWatch nobody(nullptr);
    if (n_threads > n_tasks) n_threads = static_cast<int>(n_tasks);
    Job job;
    job.task = &task;
    job.n_tasks = n_tasks;
    if (n_threads <= 1 || inside_a_task || !pool().try_to_run(job, n_threads)) work_alone(job);
    if (job.error) std::rethrow_exception(job.error);
}

}  // namespace crfkit
