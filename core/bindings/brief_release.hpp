// Letting go of the interpreter's lock for work of some microseconds.
#pragma once

#include <atomic>

#include "base/pause.hpp"
#include "bindings/lock_release.hpp"

namespace crfkit {

// Like LockRelease, for threads that call one short function again and again. A thread that has to wait for
// the lock is put to sleep, and waking up takes longer than such work does. So whoever wants it back while
// another thread has just taken it after work of this kind, and will soon let go of it again, looks for a
// moment whether it has.
class BriefRelease : SignalWatch {
  public:
    BriefRelease() : SignalWatch(PyThreadState_Get()) {
        holder_.store(thread_,
                      std::memory_order_relaxed);  // whoever was noted has released it meanwhile
        PyEval_SaveThread();
        PyThreadState* self = thread_;
        holder_.compare_exchange_strong(self, nullptr, std::memory_order_relaxed);
    }
    ~BriefRelease() override {
        for (int i = 0; i < longest_wait && holder_.load(std::memory_order_relaxed); ++i) pause_briefly();
        take_lock_back(thread_);
        holder_.store(thread_, std::memory_order_relaxed);
    }

  private:
    static constexpr int longest_wait = 1000;  // pauses: at most 50 microseconds

    inline static std::atomic<PyThreadState*> holder_{
        nullptr};  // the thread that has the lock, as far as known
};

}  // namespace crfkit
