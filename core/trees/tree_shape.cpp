#include "trees/tree_shape.hpp"

namespace crfkit {

void TreeShape::load(std::span<const std::int32_t> heads) {
    const auto n = static_cast<std::int32_t>(heads.size());
    heads_.assign(1, -1);
    heads_.insert(heads_.end(), heads.begin(), heads.end());
    previous_.assign(heads_.size(), kNoWord);
    last_.assign(2 * heads_.size(), kNoWord);
    const auto append = [&](std::int32_t m, Side side) {
        std::int32_t& last = last_[2 * heads_[m] + (side == Side::right)];
        previous_[m] = last;
        last = m;
    };
    for (std::int32_t m = 1; m <= n; ++m)
        if (m > heads_[m]) append(m, Side::right);
    for (std::int32_t m = n; m >= 1; --m)
        if (m < heads_[m]) append(m, Side::left);
}

}  // namespace crfkit
