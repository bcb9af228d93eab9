#include "graphs/message_schedules.hpp"

#include <algorithm>
#include <iterator>

#include "base/threads.hpp"
#include "graphs/priority_buckets.hpp"

namespace crfkit {

namespace {

constexpr std::int64_t kTablesPerTask = 512;
constexpr double kSteady = 0.7;   // the largest change, relative to that of …
constexpr std::size_t kLook = 4;  // so many sweeps before

constexpr double kDampings[] = {0.5, 0.75, 0.9};
constexpr double kFalls = 0.95;  // the lowest change of a few iterations, relative to that of those before, …
constexpr double kPatience = 0.1;  // … which are this share of all without damping
constexpr double kLeastPatience = 20;

}  // namespace

Damping::Damping(std::optional<double> given, std::int64_t max_iterations)
    : fixed_(given.has_value()),
      now_(given.value_or(0)),
      patience_(std::max(kLeastPatience, kPatience * static_cast<double>(max_iterations))) {}

void Damping::observe(double change) {
    if (fixed_) return;
    lowest_ = std::min(lowest_, change);
    if (++n_observed_ < patience_ / (1 - now_)) return;
    const bool falls = lowest_ < kFalls * lowest_before_;
    lowest_before_ = lowest_;
    lowest_ = HUGE_VAL;
    n_observed_ = 0;
    if (falls) return;
    const double* next = std::upper_bound(std::begin(kDampings), std::end(kDampings), now_);
    if (next == std::end(kDampings)) return;
    now_ = *next;
    lowest_before_ = HUGE_VAL;
}

template <class Domain>
MessageRun<Domain>::MessageRun(Messages<Domain>& messages, const MessageOptions& options)
    : plan_(messages.plan()),
      messages_(messages),
      options_(options),
      pairs_(messages),
      workspaces_(static_cast<std::size_t>(std::max(1, options.n_threads)), Workspace(plan_)),
      changes_(workspaces_[0].at.size()),
      residuals_(plan_.tables.size()),
      fresh_(static_cast<std::size_t>(plan_.message_ptr.back())),
      next_look_((options.max_iterations + 1) / 2 * n_tables()),
      damping_(options.damping, options.max_iterations) {}

template <class Domain>
void MessageRun<Domain>::look_again() {
    if (updates_ < next_look_ || !look_) return;
    if (n_looks_++ == 0) {
        measure();
        residual_at_first_look_ = residual_;
    }
    next_look_ = updates_ + std::max(n_tables(), options_.max_iterations * n_tables() / (2 * kLooks));
    look_();
}

template <class Domain>
void MessageRun<Domain>::run(const std::function<void()>& look) {
    if (plan_.tables.empty()) return;
    look_ = look;
    if (plan_.is_forest) {
        // Backwards, every table sends to its first variable what its whole branch says; then forwards, what
        // all else says.
        sweep(true);
        sweep(false);
        measure();
        return;
    }
    switch (options_.schedule) {
        case Schedule::kSequential:
            return sequential();
        case Schedule::kSynchronous:
            return synchronous();
        case Schedule::kResidual:
            return residual_first();
    }
}

template <class Domain>
double MessageRun<Domain>::update(std::int64_t i, double damping) {
    ++updates_;
    if (pairs_.used()) {
        pace_.work(64);
        return pairs_.update(i, damping, changes_.data());
    }
    const std::int64_t f = plan_.tables[i];
    Workspace& w = workspaces_[0];
    messages_.gather(f, w);
    messages_.send(f, w);
    const double change = messages_.difference(f, w.out.data(), changes_.data());
    messages_.store(f, w.out.data(), damping);
    pace_.work(plan_.graph.table_ptr[f + 1] - plan_.graph.table_ptr[f] + 64);
    return change;
}

template <class Domain>
double MessageRun<Domain>::sweep(bool backwards) {
    const double damping = plan_.is_forest ? 0 : damping_.now();
    double largest = 0;
    if (pairs_.used()) {
        updates_ += n_tables();
        largest = pairs_.sweep(backwards, damping);
    } else {
        for (std::int64_t i = 0; i < n_tables(); ++i)
            largest = std::max(largest, update(backwards ? n_tables() - 1 - i : i, damping));
    }
    damping_.observe(largest);
    return largest;
}

template <class Domain>
void MessageRun<Domain>::measure() {
    pairs_.refresh();
    const std::int64_t n_tasks = (n_tables() + kTablesPerTask - 1) / kTablesPerTask;
    parallel_for(n_tasks, options_.n_threads, [&](std::int64_t task, int worker) {
        Workspace& w = workspaces_[worker];
        Pace pace;
        const std::int64_t end = std::min(n_tables(), (task + 1) * kTablesPerTask);
        if (pairs_.used()) {
            check_interruption();
            return pairs_.measure(task * kTablesPerTask, end, fresh_.data(), residuals_.data());
        }
        for (std::int64_t i = task * kTablesPerTask; i < end; ++i) {
            const std::int64_t f = plan_.tables[i], begin = plan_.message_ptr[plan_.graph.scope_ptr[f]];
            messages_.gather(f, w);
            messages_.send(f, w);
            residuals_[i] = messages_.difference(f, w.out.data());
            std::copy_n(w.out.data(), plan_.message_ptr[plan_.graph.scope_ptr[f + 1]] - begin,
                        fresh_.data() + begin);
            pace.work(plan_.graph.table_ptr[f + 1] - plan_.graph.table_ptr[f] + 64);
        }
    });
    residual_ = *std::max_element(residuals_.begin(), residuals_.end());
}

template <class Domain>
void MessageRun<Domain>::store_fresh() {
    if (pairs_.used()) return pairs_.store(fresh_, damping_.now());
    for (const std::int64_t f : plan_.tables)
        messages_.store(f, fresh_.data() + plan_.message_ptr[plan_.graph.scope_ptr[f]], damping_.now());
}

template <class Domain>
void MessageRun<Domain>::synchronous() {
    for (;;) {
        measure();
        if (residual_ < options_.tolerance || spent()) return;
        damping_.observe(residual_);
        store_fresh();
        updates_ += n_tables();
        look_again();
    }
}

template <class Domain>
void MessageRun<Domain>::sequential() {
    for (bool backwards = true;; backwards = !backwards) {
        const double change = spent() ? 0 : sweep(backwards);
        if (change < options_.tolerance) {
            measure();
            if (residual_ < options_.tolerance || spent()) return;
        }
        look_again();
    }
}

// Residual belief propagation (Elidan, McGraw and Koller 2006), with priorities that need no message to be
// computed in advance (Sutton and McCallum 2007): how much the messages to a table have changed since it was
// last updated. When all are small the residuals themselves are measured, and take their place.
template <class Domain>
void MessageRun<Domain>::residual_first() {
    // Easy graphs converge in a few sweeps, which are quicker: go on as long as changes fall steadily.
    std::vector<double> changes;
    for (bool backwards = true; !spent(); backwards = !backwards) {
        const std::size_t n = changes.size();
        changes.push_back(sweep(backwards));
        if (changes[n] < options_.tolerance || (n >= kLook && changes[n] > kSteady * changes[n - kLook]))
            break;
        look_again();
    }
    measure();
    PriorityBuckets waiting(residuals_.size(), options_.tolerance);
    const auto set_priorities = [&] {
        for (std::int64_t i = 0; i < n_tables(); ++i) waiting.change(i, residuals_[i]);
    };
    set_priorities();
    std::vector<std::int64_t> number(static_cast<std::size_t>(plan_.graph.n_tables()));
    for (std::int64_t i = 0; i < n_tables(); ++i) number[plan_.tables[i]] = i;
    const double damping = damping_.now(), kept = 1 - damping;
    while (residual_ >= options_.tolerance && !spent()) {
        look_again();
        if (!waiting.any() || (updates_ + 1) / n_tables() >= options_.max_iterations) {
            measure();
            updates_ += n_tables();
            set_priorities();
            continue;
        }
        const std::int64_t top = waiting.top(), f = plan_.tables[top];
        waiting.change(top, damping * update(top, damping));
        for (std::int64_t e = plan_.graph.scope_ptr[f]; e < plan_.graph.scope_ptr[f + 1]; ++e) {
            const double change = kept * changes_[e - plan_.graph.scope_ptr[f]];
            if (change == 0) continue;
            for (const std::int64_t other : plan_.messages_to(plan_.graph.scopes[e])) {
                if (other == e) continue;
                const std::int64_t i = number[plan_.table_of[other]];
                waiting.change(i, waiting.priority(i) + change);
            }
        }
    }
}

template class MessageRun<Sums<PlainNumbers>>;
template class MessageRun<Sums<Logarithms>>;
template class MessageRun<Maxima<PlainNumbers>>;
template class MessageRun<Maxima<Logarithms>>;

}  // namespace crfkit
