// How to save arcs where many nodes go on almost alike.
#pragma once

#include <cstdint>
#include <vector>

namespace crfkit {

// Labels that are left together: through a pool by all sources that are no exception for any of them, and
// directly by the others; or directly by all sources.
struct PoolBlock {
    bool pooled;
    std::vector<std::int32_t> labels;
};

// Cuts labels into blocks so that few arcs are needed. exceptions[c] lists the sources, 0..n_sources − 1,
// whose outcome of label c is not the common one, ascending. A block of k labels with u exceptions in all
// costs
//   n · k arcs directly,      (n − u) + k + u · k through a pool
// and the cut is the best one of the labels in the order of their number of exceptions.
std::vector<PoolBlock> plan_pools(std::int64_t n_sources,
                                  const std::vector<std::vector<std::int32_t>>& exceptions);

}  // namespace crfkit
