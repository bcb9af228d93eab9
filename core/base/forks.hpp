// What has to hold in a child that fork() makes while other threads are inside the core.
//
// Such a child has only the thread that called fork(). Whatever another thread held at that moment is never
// given back, so that nothing here may wait for it: threads.cpp has a pool per process, and the locks of the
// core are the two below, which know in which process they were taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace crfkit {

// The number of this process in the line of its forked parents: 1, in a child 2, and so on.
std::uint64_t process_number();

// A mutex (for std::lock_guard) around objects that one thread at a time may use. A thread that waits for it
// can be interrupted, see interruption.hpp.
class ForkMutex {
  public:
    // Throws std::runtime_error where the mutex was held when this process was forked: what it guards may be
    // in any state.
    void lock();
    // The same for what the first caller makes anew: the mutex is taken from a thread that is no
    // more.
    void lock_or_inherit();
    void unlock() { holder_.store(0, std::memory_order_release); }

  private:
    void lock(bool inherits);

    std::atomic<std::uint64_t> holder_{0};  // the process of the thread that has it; 0: nobody has
};

// Runs a function at most once. std::call_once of a parent may never finish in its child.
class Once {
  public:
    // Runs it unless it, or another one, has been run to its end; threads that come meanwhile wait.
    template <class Function>
    void run(const Function& function) {
        if (done_.load(std::memory_order_acquire)) return;
        mutex_.lock_or_inherit();
        const std::lock_guard held(mutex_, std::adopt_lock);
        if (done_.load(std::memory_order_relaxed)) return;
        function();
        done_.store(true, std::memory_order_release);
    }
    // Begins anew; no thread may be in `run`.
    void reset() { done_.store(false, std::memory_order_relaxed); }

  private:
    std::atomic<bool> done_{false};
    ForkMutex mutex_;
};

}  // namespace crfkit
