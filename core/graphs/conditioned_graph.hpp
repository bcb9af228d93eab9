// A factor graph with some values not allowed: what is left of its variables and tables.
//
// Values that are not allowed are removed, and then, again and again, values for which some table has −inf in
// all configurations of the values that are left (generalised arc consistency): no assignment with a score
// above −inf has them. A variable with one value left disappears from the scopes; it is fixed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graphs/factor_graph.hpp"

namespace crfkit {

struct ConditionedGraph {
    // allowed [Σ cardinalities], one byte for each value of each variable, or empty: all. scores [n_scores],
    // or empty: nothing is known of them, and no value is removed because of them.
    ConditionedGraph(const FactorGraph& graph, std::span<const std::uint8_t> allowed,
                     std::span<const double> scores);

    struct Table {
        std::int64_t table;               // its number in the graph
        std::vector<std::int32_t> scope;  // free variables, in the order of the graph's scope
        // score of a configuration: scores[first + Σ_k strides[k] · values of scope[k] [its value]]
        std::int64_t first;
        std::vector<std::int64_t> strides;
    };

    std::int32_t n_free() const { return static_cast<std::int32_t>(sizes.size()); }
    std::span<const std::int32_t> values_of(std::int32_t free) const {
        return std::span(values).subspan(value_ptr[free], static_cast<std::size_t>(sizes[free]));
    }

    bool possible = true;                // false: some variable has no value left
    std::vector<std::int32_t> variable;  // [free] its number in the graph
    std::vector<std::int32_t> sizes;     // [free] how many values are left, 2 or more
    std::vector<std::int64_t> value_ptr;
    std::vector<std::int32_t> values;     // of free variables: the ids of those that are left, rising
    std::vector<std::int32_t> fixed;      // [V] the only value left; −1: free
    std::vector<Table> tables;            // those over free variables
    std::vector<std::int64_t> constants;  // places of the scores that are left of all other tables
};

}  // namespace crfkit
