// Long work can be stopped from outside: by Ctrl-C, or by any other signal that whoever called the core
// listens to.
//
// The caller opens a Watch around its call. Loops of the core call check_interruption() about once a
// millisecond. On the caller's thread this asks the watch, twenty times a second, whether to go on; threads
// that help with the work look at what the answer was. A thread that has to stop throws, and objects of the
// core remain usable: the same question asked again has the same answer as if it had never been interrupted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>

namespace crfkit {

// What helping threads throw; the caller's thread throws the exception of its watch.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted"; }
};

// While it lives, the work of this thread, and that of threads which help it, can be stopped.
class Watch {
  public:
    Watch();
    virtual ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    bool is_stopped() const { return stopped_.load(std::memory_order_acquire); }
    // On its own thread: asks whether to go on unless that was asked a moment ago. Throws nothing.
    void ask();
    // Throws the exception that it was stopped with.
    [[noreturn]] void rethrow() const { std::rethrow_exception(error_); }

  protected:
    // What to stop with; null: go on.
    virtual std::exception_ptr look() = 0;

  private:
    std::atomic<bool> stopped_{false};
    std::exception_ptr error_;
    std::chrono::steady_clock::time_point next_{};  // when to ask again; 0 before the first time
    Watch* outer_;                                  // of the same thread
    bool outer_own_;
};

// How long a watch is not asked again.
inline constexpr std::chrono::milliseconds kBetweenLooks{50};

// The watch that this thread works under, or none.
Watch* current_watch();

// Makes this thread work under the watch of another one while it lives.
class UnderWatch {
  public:
    explicit UnderWatch(Watch* watch);
    ~UnderWatch();
    UnderWatch(const UnderWatch&) = delete;
    UnderWatch& operator=(const UnderWatch&) = delete;

  private:
    Watch* outer_;
    bool outer_own_;
};

// Throws if the work of this thread is to stop.
void check_interruption();

// Calls check_interruption every millisecond or so in a loop that says how many operations its steps take.
// Always inlined: kernels are compiled several times, for different processors.
class Pace {
  public:
    [[gnu::always_inline]] void work(std::int64_t operations) {
        if ((left_ -= operations) < 0) {
            left_ = kOperations;
            check_interruption();
        }
    }

  private:
    static constexpr std::int64_t kOperations = std::int64_t(1) << 22;
    std::int64_t left_ = kOperations;
};

}  // namespace crfkit
