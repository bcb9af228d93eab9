// Letting go of the interpreter's lock while the core works.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

namespace crfkit {

// Waits for the lock. Before Python 3.14, a daemon thread that asks for it when the interpreter has ended is
// ended by the C library, which unwinds it as an exception would: out of a destructor, or of nanobind's
// functions, that aborts the process. Such a thread waits for the end of the process here, as it does from
// Python 3.14 on.
inline void take_lock_back(PyThreadState* thread) {
    try {
        PyEval_RestoreThread(thread);
    } catch (...) {
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
}

class LockRelease {
  public:
    LockRelease() : thread_(PyEval_SaveThread()) {}
    ~LockRelease() { take_lock_back(thread_); }
    LockRelease(const LockRelease&) = delete;
    LockRelease& operator=(const LockRelease&) = delete;

  private:
    PyThreadState* thread_;
};

}  // namespace crfkit
