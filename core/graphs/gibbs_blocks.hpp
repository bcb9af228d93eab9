// Variables in blocks that are forests when all other variables are fixed: what blocked Gibbs sampling draws
// at once.
#pragma once

#include <cstdint>
#include <vector>

#include "graphs/message_plan.hpp"

namespace crfkit {

// A table with two or more variables in the block.
struct BlockLink {
    std::int64_t table;
    std::int64_t parent;                 // edge to the variable that comes first in the block
    std::vector<std::int64_t> children;  // edges to the others in the block
};

struct GibbsBlock {
    std::vector<std::int64_t> roots;     // variables that are no child
    std::vector<BlockLink> links;        // parents before their children
    std::vector<std::int64_t> members;   // variables
    std::vector<std::int64_t> boundary;  // edges to members from tables whose other variables are outside
};

struct GibbsBlocks {
    // Blocks as large as possible for variables that come in this order; without `forests` no table has two
    // variables in a block.
    GibbsBlocks(const MessagePlan& plan, const std::vector<std::int64_t>& order, bool forests);

    std::vector<GibbsBlock> blocks;
    std::vector<std::int64_t>
        strides;  // [E] how far the entries of a table are apart for the values of a variable
    std::vector<std::int32_t> block_of;  // [V]
};

}  // namespace crfkit
