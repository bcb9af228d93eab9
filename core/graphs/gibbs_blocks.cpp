#include "graphs/gibbs_blocks.hpp"

#include <algorithm>
#include <numeric>

namespace crfkit {

namespace {

std::int64_t root_of(std::vector<std::int64_t>& parent, std::int64_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
}

// Assigns each variable the first block that it makes no cycle in.
std::vector<std::int32_t> assign_blocks(const MessagePlan& plan, const std::vector<std::int64_t>& order,
                                        bool forests) {
    const std::int64_t n = plan.graph.n_variables();
    std::vector<std::int32_t> block_of(static_cast<std::size_t>(n), -1);
    std::vector<std::int64_t> left = order, later, parent(static_cast<std::size_t>(n)), reached;
    for (std::int32_t block = 0; !left.empty(); ++block, left.swap(later), later.clear()) {
        std::iota(parent.begin(), parent.end(), 0);
        for (const std::int64_t v : left) {
            // the trees that its tables lead to; a table's variables in the block are all in one tree
            reached.clear();
            for (const std::int64_t edge : plan.messages_to(v))
                for (const std::int32_t u : plan.graph.scope(plan.table_of[edge]))
                    if (u != v && block_of[u] == block) {
                        reached.push_back(root_of(parent, u));
                        break;
                    }
            std::sort(reached.begin(), reached.end());
            const bool cycle = std::adjacent_find(reached.begin(), reached.end()) != reached.end();
            if (cycle || (!forests && !reached.empty())) {
                later.push_back(v);
                continue;
            }
            block_of[v] = block;
            for (const std::int64_t tree : reached) parent[tree] = v;
        }
    }
    return block_of;
}

void order_block(const MessagePlan& plan, const std::vector<std::int32_t>& block_of, std::int32_t number,
                 const std::vector<std::int64_t>& members, GibbsBlock& block) {
    const FactorGraph& graph = plan.graph;
    std::vector<char> seen(static_cast<std::size_t>(graph.n_variables()));
    std::vector<std::int64_t> queue;
    for (const std::int64_t root : members) {
        if (seen[root]) continue;
        seen[root] = 1;
        block.roots.push_back(root);
        queue.assign(1, root);
        for (std::size_t next = 0; next < queue.size(); ++next)
            for (const std::int64_t edge : plan.messages_to(queue[next])) {
                const std::int64_t f = plan.table_of[edge];
                BlockLink link{f, edge, {}};
                bool alone = true;
                for (std::int64_t e = graph.scope_ptr[f]; e < graph.scope_ptr[f + 1]; ++e) {
                    const std::int64_t u = graph.scopes[e];
                    if (e == edge || block_of[u] != number) continue;
                    alone = false;
                    if (seen[u]) continue;  // the table that led to this variable
                    link.children.push_back(e);
                    seen[u] = 1;
                    queue.push_back(u);
                }
                if (alone) block.boundary.push_back(edge);
                if (!link.children.empty()) block.links.push_back(std::move(link));
            }
    }
    block.members = members;
}

}  // namespace

GibbsBlocks::GibbsBlocks(const MessagePlan& plan, const std::vector<std::int64_t>& order, bool forests)
    : strides(plan.graph.scopes.size()), block_of(assign_blocks(plan, order, forests)) {
    const FactorGraph& graph = plan.graph;
    for (std::int64_t f = 0; f < graph.n_tables(); ++f) {
        std::int64_t stride = 1;
        for (std::int64_t e = graph.scope_ptr[f + 1]; e-- > graph.scope_ptr[f];) {
            strides[e] = stride;
            stride *= graph.cardinalities[graph.scopes[e]];
        }
    }
    std::vector<std::vector<std::int64_t>> members;
    for (const std::int64_t v : plan.variables) {
        if (static_cast<std::size_t>(block_of[v]) >= members.size()) members.resize(block_of[v] + 1);
        members[block_of[v]].push_back(v);
    }
    blocks.resize(members.size());
    for (std::size_t b = 0; b < members.size(); ++b)
        order_block(plan, block_of, static_cast<std::int32_t>(b), members[b], blocks[b]);
}

}  // namespace crfkit
