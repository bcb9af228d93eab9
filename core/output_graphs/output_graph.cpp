#include "output_graphs/output_graph.hpp"

#include <algorithm>
#include <stdexcept>

namespace crfkit {
namespace {

bool are_pointers(const std::vector<std::int64_t>& ptr, std::size_t n_lists, std::size_t n_items) {
    return ptr.size() == n_lists + 1 && ptr.front() == 0 && std::is_sorted(ptr.begin(), ptr.end()) &&
           ptr.back() == static_cast<std::int64_t>(n_items);
}

bool in_range(const std::vector<std::int32_t>& numbers, std::int64_t end) {
    return std::all_of(numbers.begin(), numbers.end(), [=](std::int32_t i) { return i >= 0 && i < end; });
}

}  // namespace

void OutputGraph::check(std::int32_t n_labels, std::int64_t n_own) const {
    bool fits = !level_ptr.empty() && are_pointers(level_ptr, level_ptr.size() - 1, labels.size()) &&
                are_pointers(in_ptr, labels.size(), sources.size()) &&
                are_pointers(weight_ptr, sources.size(), weights.size()) && in_range(labels, n_labels) &&
                in_range(weights, n_own);
    for (std::int64_t t = 0; fits && t < n_positions(); ++t)
        for (std::int64_t e = in_ptr[level_ptr[t]]; e < in_ptr[level_ptr[t + 1]]; ++e)
            fits &= t == 0 ? sources[e] == -1 : sources[e] >= level_ptr[t - 1] && sources[e] < level_ptr[t];
    if (!fits) throw std::invalid_argument("the states and arcs of a graph do not fit together");
}

}  // namespace crfkit
