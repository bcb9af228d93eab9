// The assignments with the highest scores.
//
// Collecting as for sums, with maxima of sums of scores in place of sums of products. From the last clique to
// the first, each then chooses the summed configuration with the highest score given what is chosen already.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "graphs/factor_graph.hpp"
#include "graphs/junction_tree.hpp"
#include "kernels/tables.hpp"

namespace crfkit {

struct ScoredAssignment {
    double score;
    std::vector<std::int32_t> values;  // [V]
};

// The k best assignments, best first, fewer where fewer have a score above −inf. Among equals the order is
// always the same. The tree must be complete(), and graph the one that it was made for.
std::vector<ScoredAssignment> k_best_assignments(const FactorGraph& graph, const JunctionTree& tree,
                                                 std::span<const double> scores, std::int64_t k);

// What the k best assignments take of the memory beyond tree.bytes(), those that are returned included.
double bytes_of_k_best(const JunctionTree& tree, std::int64_t k);

}  // namespace crfkit
