#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#endif
#ifndef _WIN32
#include <unistd.h>
#endif

namespace crfkit {
namespace {

// One call of parallel_for: shared by the caller and the helpers that join it.
struct Job {
    const std::function<void(std::int64_t, int)>* task;
    std::int64_t n_tasks;
    std::atomic<std::int64_t> next{0};
    std::exception_ptr error;
    std::mutex error_mutex;

    void work(int worker) {
        for (;;) {
            const std::int64_t i = next.fetch_add(1);
            if (i >= n_tasks) return;
            try {
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
    void run(Job& job, int n_threads) {
        std::lock_guard one_job_at_a_time(run_mutex_);
        int n_helpers = n_threads - 1;
        {
            std::lock_guard lock(mutex_);
            n_helpers = std::min(n_helpers, grow(n_helpers));
            job_ = &job;
            n_wanted_ = n_helpers;
            n_busy_ = n_helpers;
            ++generation_;
        }
        wake_.notify_all();
        inside_a_task = true;
        job.work(0);
        inside_a_task = false;
        std::unique_lock lock(mutex_);
        done_.wait(lock, [this] { return n_busy_ == 0; });
        job_ = nullptr;
    }

  private:
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
        std::uint64_t seen = 0;
        for (;;) {
            Job* job;
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [&] { return generation_ != seen; });
                seen = generation_;
                if (worker > n_wanted_) continue;
                job = job_;
            }
            job->work(worker);
            {
                std::lock_guard lock(mutex_);
                if (--n_busy_ == 0) done_.notify_one();
            }
        }
    }

    std::mutex run_mutex_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::vector<std::thread> threads_;
    Job* job_ = nullptr;
    int n_wanted_ = 0, n_busy_ = 0;
    std::uint64_t generation_ = 0;
};

// The pool lives as long as the process and is never destroyed (its threads sleep when Python exits). A child
// made by fork() has none of the threads, so it gets a pool of its own.
Pool& pool() {
    static std::mutex mutex;
    static Pool* current = nullptr;
#ifndef _WIN32
    static pid_t owner = 0;
    std::lock_guard lock(mutex);
    if (!current || owner != getpid()) {
        current = new Pool();
        owner = getpid();
    }
#else
    std::lock_guard lock(mutex);
    if (!current) current = new Pool();
#endif
    return *current;
}

}  // namespace

void parallel_for(std::int64_t n_tasks, int n_threads, const std::function<void(std::int64_t, int)>& task) {
    if (n_threads > n_tasks) n_threads = static_cast<int>(n_tasks);
    Job job;
    job.task = &task;
    job.n_tasks = n_tasks;
    if (n_threads <= 1 || inside_a_task) {
        const bool outer = inside_a_task;
        inside_a_task = true;
        job.work(0);
        inside_a_task = outer;
    } else {
        pool().run(job, n_threads);
    }
    if (job.error) std::rethrow_exception(job.error);
}

int available_threads() {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    const unsigned n = std::thread::hardware_concurrency();
    return n ? static_cast<int>(n) : 1;
}

}  // namespace crfkit
