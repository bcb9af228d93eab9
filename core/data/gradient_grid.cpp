#include "data/gradient_grid.hpp"

#include <algorithm>
#include <cmath>

namespace crfkit {
namespace {

constexpr double kMostUneven = 64;  // weights of sequences, the highest by the lowest that is not 0

bool has_values(const Design& design) {
    return !design.dense.empty() || design.arcs.values.size() > 0 || design.split.rows.values.size() > 0 ||
           design.split.entries.values.size() > 0;
}

}  // namespace

std::optional<SumGrid> gradient_grid(const Design& design, const Annotation& gold,
                                     const GroupedBlocks& grouped) {
    if (has_values(design) || gold.weights.empty()) return std::nullopt;
    const double highest = *std::max_element(gold.weights.begin(), gold.weights.end());
    const bool even = std::ranges::all_of(
        gold.weights, [&](double weight) { return weight == 0 || highest <= kMostUneven * weight; });
    if (!even || !(highest > 0)) return std::nullopt;
    const double bound = highest * static_cast<double>(std::max(design.n_positions(), grouped.most_active()));
    if (!std::isfinite(bound)) return std::nullopt;
    return SumGrid(bound);
}

}  // namespace crfkit
