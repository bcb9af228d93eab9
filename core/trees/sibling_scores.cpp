#include "trees/sibling_scores.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "kernels/sibling_rows.hpp"

namespace crfkit {

// Numbers that no tree has may be anything.
void refuse_unusable_siblings(const double* siblings, std::int64_t n_words) {
    const std::int64_t side = n_words + 1;
    if (sibling_kernels().all_usable(siblings, side * side * side)) return;
    for (std::int64_t h = 0; h < side; ++h)
        for (std::int64_t s = 0; s < side; ++s)
            for (std::int64_t m = 1; m < side; ++m) {
                const bool between = h < m ? h <= s && s < m : m < s && s <= h;
                const double score = siblings[(h * side + s) * side + m];
                if (!between || score < std::numeric_limits<double>::infinity()) continue;
                throw UnusableScore("[" + std::to_string(h) + ", " + std::to_string(s) + ", " +
                                    std::to_string(m) + "] is " + (std::isnan(score) ? "NaN" : "+inf") +
                                    ", expected a finite number, or −inf to forbid.");
            }
}

}  // namespace crfkit
