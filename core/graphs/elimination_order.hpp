// Orders in which the variables of a graph are eliminated.
//
// Eliminating v joins its neighbours N(v): the clique {v} ∪ N(v) is a table of Π sizes entries, and the cost
// of an order is the sum of these. The best order is NP-hard to find. Greedy rules are good: the next
// variable is the one with the fewest edges missing among its neighbours (min-fill), with the least weight of
// these edges (weighted min-fill), or with the smallest clique (min-degree, weighted). Ties are broken at
// random, so several tries find different orders.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace crfkit {

struct EliminationOrder {
    std::vector<std::int32_t> variables;       // as far as it was followed
    bool complete = false;                     // false: every try was given up
    double cost = 0;                           // Σ entries of the cliques
    double largest = 0;                        // entries of the largest clique
    std::vector<std::int32_t> largest_clique;  // its variables, the one that is eliminated first
};

// The best of several tries. sizes [n] are the numbers of values; scopes list variables that are neighbours.
// All tries but the first are given up when they cost more than most_cost, and all when they take too long.
// The effort is counted in operations, never in time, and is a share of what the order costs: the same graph
// always has the same order.
EliminationOrder find_elimination_order(std::span<const std::int32_t> sizes,
                                        const std::vector<std::vector<std::int32_t>>& scopes,
                                        double most_cost);

}  // namespace crfkit
