// Which values are possible, a possible assignment, and better ones near it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graphs/message_plan.hpp"

namespace crfkit {

// The values of each variable that are left, and tables whose other variables exclude some (arc consistency).
class PossibleValues {
  public:
    PossibleValues(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed);

    // Removes every value that no configuration of some table supports; false if a variable has none left.
    bool propagate();
    // Leaves one value to a variable, and propagates.
    bool fix(std::int64_t variable, std::int32_t value);
    // Brings back what was removed since n_removed() had this value.
    void undo(std::size_t n_removed);
    std::size_t n_removed() const { return removed_.size(); }

    bool has(std::int64_t variable, std::int32_t value) const {
        return left_[plan_.graph.value_ptr[variable] + value] != 0;
    }
    std::int32_t n_left(std::int64_t variable) const { return n_left_[variable]; }

  private:
    void remove(std::int64_t variable, std::int32_t value);
    bool prune(std::int64_t f);

    const MessagePlan& plan_;
    std::span<const double> scores_;
    std::vector<char> left_;            // [values]
    std::vector<std::int32_t> n_left_;  // [V]
    std::vector<std::pair<std::int64_t, std::int32_t>> removed_;
    std::vector<std::int64_t> queue_;  // tables to look at
    std::vector<char> queued_;         // [F]
    std::vector<char> supported_;
    std::vector<std::int32_t> at_;
};

// A possible assignment by backtracking, values with a high `preference` [values] first; none: there is none.
// Throws SearchSpent after `most` decisions.
struct SearchSpent {};
std::optional<std::vector<std::int32_t>> find_assignment(const MessagePlan& plan,
                                                         std::span<const double> scores,
                                                         std::span<const bool> allowed,
                                                         std::span<const double> preference,
                                                         std::int64_t most = 1 << 18);

// Changes values one at a time as long as the score rises (iterated conditional modes).
void improve(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed,
             std::vector<std::int32_t>& assignment);

// Scores of all values of one variable with the others fixed, by tables over two or more variables alone.
void add_conditional_scores(const MessagePlan& plan, std::span<const double> scores,
                            std::span<const std::int32_t> assignment, std::int64_t variable, double* out);

// Tables over one variable, and −inf for values that are not allowed [values].
std::vector<double> own_scores(const FactorGraph& graph, std::span<const double> scores,
                               std::span<const bool> allowed);

}  // namespace crfkit
