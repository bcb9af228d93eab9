// Letting go of the interpreter's lock while the core works.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <exception>
#include <thread>

#include "base/interruption.hpp"

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

// Runs the handlers of signals that have come. What they raise, as that of Ctrl-C does, ends the work of the
// core. Python runs handlers in its main thread only: elsewhere nothing is ever pending.
class SignalWatch : public Watch {
  protected:
    explicit SignalWatch(PyThreadState* thread) : thread_(thread) {}
    std::exception_ptr look() override {
        take_lock_back(thread_);
        std::exception_ptr error;
        if (PyErr_CheckSignals() < 0) error = std::make_exception_ptr(nanobind::python_error());
        PyEval_SaveThread();
        return error;
    }
    PyThreadState* thread_;
};

// The same for work that keeps the lock.
class LockedWatch : Watch {
    std::exception_ptr look() override {
        if (PyErr_CheckSignals() < 0) return std::make_exception_ptr(nanobind::python_error());
        return nullptr;
    }
};

class LockRelease : SignalWatch {
  public:
    LockRelease() : SignalWatch(PyEval_SaveThread()) {}
    ~LockRelease() override { take_lock_back(thread_); }
};

// What work() gives, without the interpreter's lock.
template <class Release = LockRelease, class Work>
auto unlocked(const Work& work) {
    const Release release;
    return work();
}

// Has the lock while it lives, in work that has let go of it.
class LockTaken {
  public:
    LockTaken() {
        try {
            state_ = PyGILState_Ensure();
        } catch (...) {  // as in take_lock_back
            for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
        }
    }
    ~LockTaken() { PyGILState_Release(state_); }
    LockTaken(const LockTaken&) = delete;
    LockTaken& operator=(const LockTaken&) = delete;

  private:
    PyGILState_STATE state_;
};

}  // namespace crfkit
