// In which order messages are computed, and when that ends.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/interruption.hpp"
#include "graphs/belief_propagation.hpp"
#include "graphs/messages.hpp"
#include "graphs/pair_messages.hpp"

namespace crfkit {

// The share of old messages that is kept: a given one; or none at first, and more where changes do not fall.
class Damping {
  public:
    Damping(std::optional<double> given, std::int64_t max_iterations);
    double now() const { return now_; }
    // The largest change of an iteration, before damping.
    void observe(double change);

  private:
    bool fixed_;
    double now_, patience_;
    double lowest_ = HUGE_VAL, lowest_before_ = HUGE_VAL;  // changes of a few iterations, and of those before
    std::int64_t n_observed_ = 0;
};

template <class Domain>
class MessageRun {
  public:
    MessageRun(Messages<Domain>& messages, const MessageOptions& options);
    // Until the residual of all messages is below the tolerance, or the iterations are spent. In the second
    // half of these `look` is called from time to time.
    void run(const std::function<void()>& look);
    double residual() const { return residual_; }
    double damping() const { return damping_.now(); }
    // Whether messages still change as much as when `look` was called first: they do not settle.
    bool restless() const { return residual_ > kSettles * residual_at_first_look_; }
    double iterations() const { return static_cast<double>(updates_) / std::max<double>(1, n_tables()); }

  private:
    using Workspace = typename Messages<Domain>::Workspace;
    std::int64_t n_tables() const { return static_cast<std::int64_t>(plan_.tables.size()); }
    static constexpr std::int64_t kLooks = 32;
    static constexpr double kSettles = 0.5;
    void sequential();
    void synchronous();
    void residual_first();
    // Calls look() if it is time to.
    void look_again();
    // One update of every table, forwards or backwards; the largest change.
    double sweep(bool backwards);
    // The residual of the messages as they are, of each table and the largest; with them what an update would
    // make of the messages (`fresh_`).
    void measure();
    // Of the table at place i of plan.tables; the largest change.
    double update(std::int64_t i, double damping);
    void store_fresh();
    bool spent() const { return updates_ >= options_.max_iterations * n_tables(); }

    const MessagePlan& plan_;
    Messages<Domain>& messages_;
    const MessageOptions& options_;
    PairMessagesOf<Domain> pairs_;  // used if all tables are alike
    std::vector<Workspace> workspaces_;
    std::vector<double> changes_;    // of the messages of one table
    std::vector<double> residuals_;  // of each table, in the order of plan.tables
    std::vector<double> fresh_;      // [messages]
    double residual_ = 0, residual_at_first_look_ = 0;
    std::int64_t updates_ = 0, next_look_, n_looks_ = 0;
    std::function<void()> look_;
    Damping damping_;
    Pace pace_;
};

extern template class MessageRun<Sums<PlainNumbers>>;
extern template class MessageRun<Sums<Logarithms>>;
extern template class MessageRun<Maxima<PlainNumbers>>;
extern template class MessageRun<Maxima<Logarithms>>;

}  // namespace crfkit
