#include "segments/segment_model.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/lists.hpp"

namespace crfkit {

std::int64_t SegmentModel::feature_weight(std::int32_t f, std::int32_t c) const {
    const auto begin = pair_types.begin() + pair_ptr[f], end = pair_types.begin() + pair_ptr[f + 1];
    const auto found = std::lower_bound(begin, end, c);
    return found == end || *found != c ? -1 : pairs_begin + (found - pair_types.begin());
}

void SegmentModel::check(std::int32_t n_labels) const {
    const std::size_t C = first.size();
    if (inside.size() != C || last.size() != C || single.size() != C || transition.size() != C ||
        n_lengths.size() != C || unlimited.size() != C || length_begin.size() != C ||
        n_own_lengths.size() != C || exists.size() != (C + 1) * (C + 1))
        throw std::invalid_argument("the arrays of the types of segments have different lengths");
    for (const auto* labels : {&first, &inside, &last, &single})
        check_range(*labels, -1, n_labels, "a label of segments");
    check_range(transition, 0, n_labels, "transition");
    std::vector<std::int32_t> sorted = transition;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        throw std::invalid_argument("two types of segments have the same label of transitions");
    for (std::size_t c = 0; c < C; ++c)
        if (n_lengths[c] < 1 || length_begin[c] < 0 || n_own_lengths[c] < 0 ||
            n_own_lengths[c] > n_lengths[c] + unlimited[c] ||
            (unlimited[c] && n_own_lengths[c] <= n_lengths[c]) ||
            length_begin[c] + n_own_lengths[c] > pairs_begin)
            throw std::invalid_argument("type " + std::to_string(c) +
                                        " of segments has other weights than lengths");
    check_pointers(pair_ptr, pair_types.size(), "pair_ptr");
    check_range(pair_types, 0, static_cast<std::int64_t>(C), "pair_types");
    check_ascending(pair_ptr, pair_types, "pair_types");
}

void SegmentFeatures::check(std::int64_t n_positions, std::int64_t n_features) const {
    if (empty()) return;
    check_pointers(cell_ptr, n_positions, lengths.size(), "cell_ptr");
    check_pointers(ptr, static_cast<std::int64_t>(lengths.size()), ids.size(), "ptr of segment features");
    check_range(ids, 0, n_features, "segment features");
    check_ascending(cell_ptr, lengths, "lengths of segments");
    if (values.size() != ids.size())
        throw std::invalid_argument("segment features have another number of values");
}

}  // namespace crfkit
