// Which parts a tree has.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trees/tree_parts.hpp"

namespace crfkit {

class TreeShape {
  public:
    // heads [n] of the words 1 … n; the tree may have crossing arcs.
    void load(std::span<const std::int32_t> heads);

    bool has(const Arc& arc) const { return heads_[arc.dependent] == arc.head; }
    bool has(const SecondOrderPart& part) const {
        if (part.kind == SecondOrderPart::Kind::grandparent)
            return heads_[part.dependent] == part.head && heads_[part.head] == part.other;
        if (part.dependent == kNoWord) return last(part.head, part.side) == part.other;
        return heads_[part.dependent] == part.head && previous_[part.dependent] == part.other;
    }
    // Calls function(part) for every part of second order; those of the root are among them but for its
    // empty side.
    template <class Function>
    void each_second_order(const Function& function) const;

    std::int32_t head(std::int64_t word) const { return heads_[word]; }
    std::int32_t last(std::int32_t head, Side side) const { return last_[2 * head + (side == Side::right)]; }
    std::int32_t previous(std::int64_t word) const { return previous_[word]; }

  private:
    std::vector<std::int32_t> heads_;  // [n + 1]; −1 for the root
    std::vector<std::int32_t>
        previous_;                    // [n + 1] the sibling that is next on the way to the head, or kNoWord
    std::vector<std::int32_t> last_;  // [2 (n + 1)] the furthest dependent on each side, or kNoWord
};

template <class Function>
void TreeShape::each_second_order(const Function& function) const {
    using Kind = SecondOrderPart::Kind;
    const auto n = static_cast<std::int32_t>(heads_.size()) - 1;
    for (std::int32_t m = 1; m <= n; ++m) {
        const std::int32_t h = heads_[m];
        const Side side = side_of(h, m);
        function(SecondOrderPart{Kind::siblings, side, h, previous_[m], m});
        if (h != 0) function(SecondOrderPart{Kind::grandparent, side, h, heads_[h], m});
    }
    for (std::int32_t h = 0; h <= n; ++h)
        for (const Side side : {Side::left, Side::right})
            if (h != 0 || side == Side::right)
                function(SecondOrderPart{Kind::siblings, side, h, last(h, side), kNoWord});
}

}  // namespace crfkit
