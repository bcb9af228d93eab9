#include "base/forks.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/interruption.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace crfkit {
namespace {

std::atomic<std::uint64_t> number{1};

#ifndef _WIN32
// When the module is loaded: a static inside a function has a lock of its own.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { ++number; });
#endif

}  // namespace

std::uint64_t process_number() { return number.load(std::memory_order_relaxed); }

void ForkMutex::lock() { lock(false); }

void ForkMutex::lock_or_inherit() { lock(true); }

// Two threads rarely want the same object, so that waiting is a loop: it needs nothing of the system that a
// fork could leave behind in some state.
void ForkMutex::lock(bool inherits) {
    constexpr int brief = 1000;
    const std::uint64_t here = process_number();
    for (int i = 0;; ++i) {
        std::uint64_t holder = 0;
        if (holder_.compare_exchange_strong(holder, here, std::memory_order_acquire)) return;
        if (holder != here) {
            if (!inherits)
                throw std::runtime_error(
                    "another thread was using this object when the process was forked: make a new one in the "
                    "child");
            if (holder_.compare_exchange_strong(holder, here, std::memory_order_acquire)) return;
        }
        check_interruption();
        if (i < brief)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

}  // namespace crfkit
