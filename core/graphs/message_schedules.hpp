// In which order messages are computed, and when that ends.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interruption.hpp"
#include "graphs/belief_propagation.hpp"
#include "graphs/messages.hpp"
#include "graphs/pair_messages.hpp"

namespace crfkit {

template <class Domain>
class MessageRun {
  public:
    MessageRun(Messages<Domain>& messages, const MessageOptions& options);
    // Until the residual of all messages is below the tolerance, or the iterations are spent.
    void run();
    double residual() const { return residual_; }
    double iterations() const { return static_cast<double>(updates_) / std::max<double>(1, n_tables()); }

  private:
    using Workspace = typename Messages<Domain>::Workspace;
    std::int64_t n_tables() const { return static_cast<std::int64_t>(plan_.tables.size()); }
    void sequential();
    void synchronous();
    void residual_first();
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
    double residual_ = 0;
    std::int64_t updates_ = 0;
    Pace pace_;
};

extern template class MessageRun<Sums<PlainNumbers>>;
extern template class MessageRun<Sums<Logarithms>>;
extern template class MessageRun<Maxima<PlainNumbers>>;
extern template class MessageRun<Maxima<Logarithms>>;

}  // namespace crfkit
