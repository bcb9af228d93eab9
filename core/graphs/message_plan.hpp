// Which messages belief propagation on a factor graph sends, and in which order.
//
// A message goes from each table over two or more variables to each of these: from table f to the variable at
// place e of `scopes`, so that messages are numbered like the places. Tables over one variable are weights of
// its values, tables over none are constants.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graphs/factor_graph.hpp"

namespace crfkit {

struct MessagePlan {
    explicit MessagePlan(const FactorGraph& graph);

    std::span<const std::int64_t> messages_to(std::int64_t variable) const {
        return std::span(edges).subspan(
            static_cast<std::size_t>(edge_ptr[variable]),
            static_cast<std::size_t>(edge_ptr[variable + 1] - edge_ptr[variable]));
    }

    FactorGraph graph;
    std::vector<std::int64_t> message_ptr;  // [E + 1] where each message begins among all numbers
    std::vector<std::int64_t> table_of;     // [E] the table that sends it
    std::vector<std::int64_t> edge_ptr;     // [V + 1]
    std::vector<std::int64_t> edges;        // the messages that each variable receives
    // Tables that send messages and variables, breadth first from the first variable of each component: in a
    // graph without cycles every table has one variable that comes before all its others, and which only this
    // table connects to them.
    std::vector<std::int64_t> tables, variables;
    bool is_forest = true;
    std::int64_t widest = 0;  // the most numbers that one table sends
};

}  // namespace crfkit
