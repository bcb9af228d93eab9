#include "patterns/pools.hpp"

#include <algorithm>
#include <numeric>

namespace crfkit {

std::vector<PoolBlock> plan_pools(std::int64_t n_sources,
                                  const std::vector<std::vector<std::int32_t>>& exceptions) {
    const std::size_t n = exceptions.size();
    std::vector<std::int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    if (n_sources < 2) return {{false, order}};
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return exceptions[a].size() != exceptions[b].size() ? exceptions[a].size() < exceptions[b].size()
                                                            : exceptions[a] < exceptions[b];
    });
    // cost[j]: of the first j labels; the last of their blocks begins at begin[j].
    std::vector<std::int64_t> cost(n + 1, 0);
    std::vector<std::size_t> begin(n + 1, 0);
    std::vector<std::uint8_t> pooled(n + 1, 0);
    for (std::size_t j = 1; j <= n; ++j) cost[j] = n_sources * static_cast<std::int64_t>(n) + 1;
    std::vector<std::size_t> met(static_cast<std::size_t>(n_sources), n);  // the block that met it last
    for (std::size_t i = 0; i < n; ++i) {
        if (const std::int64_t direct = cost[i] + n_sources; direct < cost[i + 1]) {
            cost[i + 1] = direct;
            begin[i + 1] = i;
            pooled[i + 1] = 0;
        }
        std::int64_t u = 0;
        for (std::size_t j = i; j < n && u < n_sources; ++j) {
            for (const std::int32_t source : exceptions[order[j]]) {
                u += met[source] != i;
                met[source] = i;
            }
            const auto k = static_cast<std::int64_t>(j + 1 - i);
            if (const std::int64_t total = cost[i] + n_sources - u + k + u * k; total < cost[j + 1]) {
                cost[j + 1] = total;
                begin[j + 1] = i;
                pooled[j + 1] = 1;
            }
        }
    }
    std::vector<PoolBlock> blocks;
    for (std::size_t j = n; j > 0; j = begin[j]) {
        PoolBlock block{pooled[j] != 0, {order.begin() + begin[j], order.begin() + j}};
        std::sort(block.labels.begin(), block.labels.end());
        blocks.push_back(std::move(block));
    }
    std::reverse(blocks.begin(), blocks.end());
    return blocks;
}

}  // namespace crfkit
