// The grid to which what blocks add to a gradient is rounded, so that they may add it in any order
// (base/sum_grid.hpp).
//
// A residual is weight · (P − P_gold), at most the weight of its sequence. So the residuals of a feature
// whose values are 1 add up to at most W · C, where W is the highest weight of a sequence, and C says how
// often the most frequent feature is active; those of a transition to at most W · T. The grid is some 2^51
// times finer than that: for a million positions of weight 1 it is 5e-10 wide, for a hundred million in one
// shard 6e-8, where residuals in single precision are exact to about 3e-8.
#pragma once

#include <optional>

#include "base/sum_grid.hpp"
#include "data/annotation.hpp"
#include "data/blocks.hpp"
#include "data/design.hpp"

namespace crfkit {

// None where terms may differ much in size: where features have values other than 1, there are dense blocks,
// or weights of sequences are far apart.
std::optional<SumGrid> gradient_grid(const Design& design, const Annotation& gold,
                                     const GroupedBlocks& grouped);

}  // namespace crfkit
