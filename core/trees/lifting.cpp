#include "trees/lifting.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace crfkit {
namespace {

// Whether the head of word m dominates every word between the two.
bool is_projective(std::span<const std::int32_t> heads, std::int32_t m) {
    const std::int32_t h = heads[m - 1];
    if (h == 0) return true;  // the root dominates all
    for (std::int32_t k = std::min(h, m) + 1; k < std::max(h, m); ++k) {
        std::int32_t above = k;
        while (above != h && above != 0) above = heads[above - 1];
        if (above == 0) return false;
    }
    return true;
}

}  // namespace

std::int64_t lift_crossing_arcs(std::span<std::int32_t> heads) {
    const auto n = static_cast<std::int32_t>(heads.size());
    const std::vector<std::int32_t> before(heads.begin(), heads.end());
    for (;;) {
        std::int32_t shortest = 0, length = 0;
        for (std::int32_t m = 1; m <= n; ++m) {
            const std::int32_t here = std::abs(heads[m - 1] - m);
            if ((shortest == 0 || here < length) && !is_projective(heads, m)) {
                shortest = m;
                length = here;
            }
        }
        if (shortest == 0) break;
        heads[shortest - 1] = heads[heads[shortest - 1] - 1];
    }
    std::int64_t changed = 0;
    for (std::int32_t m = 0; m < n; ++m) changed += heads[m] != before[m];
    return changed;
}

}  // namespace crfkit
