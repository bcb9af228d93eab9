// Better assignments near given ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graphs/cluster_graph.hpp"
#include "graphs/forest_blocks.hpp"

namespace crfkit {

class LocalSearch {
  public:
    LocalSearch(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed);

    // Gives blocks that are forests their best values, for several divisions into blocks, as long as the
    // score of a possible assignment rises; returns it.
    double climb(std::vector<std::int32_t>& assignment);

    // Where two assignments differ, variables that share tables are in one group. Each group gets the values
    // of the second assignment where that is the better choice for `best`, which is possible; returns whether
    // any does. With n groups this is the best of 2ⁿ assignments.
    bool combine(std::vector<std::int32_t>& best, std::span<const std::int32_t> other) const;

    // Blocked Gibbs sampling from an assignment, while scores are multiplied by more and more.
    void anneal(std::vector<std::int32_t>& assignment, Random& random, int n_sweeps);

    // Gives n variables around one of them values that are best for all others, as far as their clusters
    // tell.
    void renew(std::vector<std::int32_t>& assignment, std::int64_t centre, std::int64_t n) const;

    double score(std::span<const std::int32_t> assignment) const {
        return plan_.graph.score(scores_, assignment);
    }

  private:
    ClusterTable condition(std::int64_t f, std::span<const std::int32_t> assignment,
                           std::span<const std::int32_t> number) const;

    static constexpr int kDivisions = 4;
    const MessagePlan& plan_;
    std::span<const double> scores_;
    std::span<const bool> allowed_;
    std::vector<GibbsBlocks> divisions_;
    std::vector<ForestBlocks<Maxima<Logarithms>>> ascents_;
    std::vector<double> own_;  // [values]
    double typical_ = 0;       // the range of scores of a table, on average
};

}  // namespace crfkit
