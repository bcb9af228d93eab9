#include "base/threads.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/forks.hpp"
#include "base/interruption.hpp"
#include "base/pause.hpp"
#include "base/processors.hpp"

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

// How long a thread looks for what comes next before it sleeps: to be woken takes about as long.
constexpr std::chrono::microseconds kBriefly{50};

// Waits for a condition, kBriefly at most.
template <class Condition>
void wait_briefly(const Condition& holds) {
    const auto end = std::chrono::steady_clock::now() + kBriefly;
    do {
        for (int i = 0; i < 16; ++i) {
            if (holds()) return;
            pause_briefly();
        }
    } while (std::chrono::steady_clock::now() < end);
}

// Who may join a job, and who has: helpers 1 … n_wanted while it is open. Nobody waits for a helper that has
// not joined.
class Team {
  public:
    void open(int n_wanted) { state_.store(pack(n_wanted, 0, true), std::memory_order_release); }
    // Whether this helper belongs to the job that is open now, if one is.
    bool join(int worker) {
        State state = state_.load(std::memory_order_acquire);
        do {
            if (!(state & kOpen) || worker > n_wanted(state)) return false;
        } while (!state_.compare_exchange_weak(state, state + kJoined, std::memory_order_acq_rel,
                                               std::memory_order_acquire));
        return true;
    }
    // Whether it belonged to the last job, or could have joined it.
    bool wanted(int worker) const { return worker <= n_wanted(state_.load(std::memory_order_relaxed)); }
    // Returns whether the job is closed, and all others have left it.
    bool leave() { return is_empty(state_.fetch_sub(kJoined, std::memory_order_acq_rel) - kJoined); }
    void close() { state_.fetch_and(~kOpen, std::memory_order_acq_rel); }
    bool is_empty() const { return is_empty(state_.load(std::memory_order_acquire)); }

  private:
    using State = std::uint32_t;  // how many are wanted, how many have joined, whether it is open
    static constexpr State kOpen = 1, kJoined = 2, kWanted = State(1) << 16;
    static State pack(int n_wanted, int n_joined, bool is_open) {
        return static_cast<State>(n_wanted) * kWanted + static_cast<State>(n_joined) * kJoined +
               (is_open ? kOpen : 0);
    }
    static int n_wanted(State state) { return static_cast<int>(state / kWanted); }
    static bool is_empty(State state) { return state % kWanted == 0; }

    std::atomic<State> state_{0};
};

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
        has_processors_.store(n_helpers < available_processors(), std::memory_order_relaxed);
        job_ = &job;
        team_.open(n_helpers);
        call_.fetch_add(1, std::memory_order_release);
        call_.notify_all();
        inside_a_task = true;
        job.work(0);
        team_.close();
        wait_for_team(job);
        job_ = nullptr;
        inside_a_task = false;
    }

    void wait_for_team(Job& job) {
        const auto is_done = [this] { return team_.is_empty(); };
        if (has_processors_.load(std::memory_order_relaxed)) wait_briefly(is_done);
        if (is_done()) return;
        std::unique_lock lock(mutex_);
        while (!done_.wait_for(lock, kBetweenLooks, is_done)) {
            if (!job.watch) continue;
            lock.unlock();
            job.watch->ask();
            lock.lock();
        }
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
            // A helper that joined a job before it saw the call comes here once more, for the same job.
            if (team_.join(worker)) {
                job_->work(worker);
                if (team_.leave()) {
                    std::lock_guard lock(mutex_);  // the caller has looked and sleeps, or has not looked yet
                    done_.notify_one();
                }
            }
            if (team_.wanted(worker) && has_processors_.load(std::memory_order_relaxed))
                wait_briefly([&] { return call_.load(std::memory_order_relaxed) != seen; });
        }
    }

    using Call = std::uint32_t;
    static constexpr int kMostHelpers = 1024;

    std::timed_mutex run_mutex_;
    std::mutex mutex_;
    std::condition_variable done_;
    std::vector<std::thread> threads_;
    Job* job_ = nullptr;
    Team team_;
    std::atomic<Call> call_{0};  // a number for each job: helpers sleep on it, and all wake without a mutex
    std::atomic<bool> has_processors_{false};  // one for each thread of the job
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
