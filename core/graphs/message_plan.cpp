#include "graphs/message_plan.hpp"

#include <algorithm>

namespace crfkit {

namespace {

void order_breadth_first(MessagePlan& plan) {
    const FactorGraph& graph = plan.graph;
    std::vector<char> seen_variable(static_cast<std::size_t>(graph.n_variables())),
        seen_table(static_cast<std::size_t>(graph.n_tables()));
    std::vector<std::int64_t>& queue = plan.variables;
    for (std::int64_t root = 0; root < graph.n_variables(); ++root) {
        if (seen_variable[root]) continue;
        seen_variable[root] = 1;
        std::size_t next = queue.size();
        queue.push_back(root);
        for (; next < queue.size(); ++next)
            for (const std::int64_t e : plan.messages_to(queue[next])) {
                const std::int64_t f = plan.table_of[e];
                if (seen_table[f]) continue;
                seen_table[f] = 1;
                plan.tables.push_back(f);
                std::int64_t known = 0;
                for (const std::int32_t v : graph.scope(f)) {
                    known += seen_variable[v];
                    if (!seen_variable[v]) queue.push_back(v);
                    seen_variable[v] = 1;
                }
                if (known > 1) plan.is_forest = false;  // a second way to a variable
            }
    }
}

}  // namespace

MessagePlan::MessagePlan(const FactorGraph& given)
    : graph(given), message_ptr{0}, edge_ptr(static_cast<std::size_t>(given.n_variables()) + 1) {
    for (std::int64_t f = 0; f < graph.n_tables(); ++f) {
        const bool sends = graph.scope(f).size() > 1;
        std::int64_t sent = 0;
        for (const std::int32_t v : graph.scope(f)) {
            const std::int64_t n = sends ? graph.cardinalities[v] : 0;
            message_ptr.push_back(message_ptr.back() + n);
            table_of.push_back(f);
            edge_ptr[v + 1] += sends;
            sent += n;
        }
        widest = std::max(widest, sent);
    }
    for (std::int64_t v = 0; v < graph.n_variables(); ++v) edge_ptr[v + 1] += edge_ptr[v];
    edges.resize(static_cast<std::size_t>(edge_ptr.back()));
    std::vector<std::int64_t> next(edge_ptr.begin(), edge_ptr.end() - 1);
    for (std::size_t e = 0; e < table_of.size(); ++e)
        if (graph.scope(table_of[e]).size() > 1)
            edges[next[graph.scopes[e]]++] = static_cast<std::int64_t>(e);
    order_breadth_first(*this);
}

}  // namespace crfkit
