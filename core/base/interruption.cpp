#include "base/interruption.hpp"

namespace crfkit {
namespace {

thread_local Watch* watch_here = nullptr;
thread_local bool own_watch = false;  // it was opened by this thread

}  // namespace

Watch::Watch() : outer_(watch_here), outer_own_(own_watch) {
    watch_here = this;
    own_watch = true;
}

Watch::~Watch() {
    watch_here = outer_;
    own_watch = outer_own_;
}

void Watch::ask() {
    if (is_stopped()) return;
    const auto now = std::chrono::steady_clock::now();
    const bool first = next_ == std::chrono::steady_clock::time_point{};
    if (now < next_) return;
    if (!first && (error_ = look())) stopped_.store(true, std::memory_order_release);
    next_ = (first ? now : std::chrono::steady_clock::now()) + kBetweenLooks;
}

Watch* current_watch() { return watch_here; }

UnderWatch::UnderWatch(Watch* watch) : outer_(watch_here), outer_own_(own_watch) {
    own_watch = own_watch && watch == watch_here;
    watch_here = watch;
}

UnderWatch::~UnderWatch() {
    watch_here = outer_;
    own_watch = outer_own_;
}

void check_interruption() {
    Watch* watch = watch_here;
    if (!watch) return;
    if (own_watch) {
        watch->ask();
        if (watch->is_stopped()) watch->rethrow();
    } else if (watch->is_stopped()) {
        throw Interrupted();
    }
}

}  // namespace crfkit
