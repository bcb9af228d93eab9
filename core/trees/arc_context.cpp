#include "trees/arc_context.hpp"

#include <map>

#include "trees/arc_features.hpp"

namespace crfkit {

ArcContext arc_context(const ArcLayout& layout, const double* w, const Treebank& treebank, std::int64_t n,
                       std::int64_t head, std::int64_t dependent) {
    ArcFeatures features;
    features.load(treebank, n);
    std::vector<Key> keys, numbers, one;
    features.arc(head, dependent, keys, &numbers);
    std::map<std::int64_t, double> sums;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        one.assign(1, keys[i]);
        layout.arcs.each(one, [&](std::int32_t d) { sums[static_cast<std::int64_t>(numbers[i])] += w[d]; });
    }
    ArcContext found;
    for (const auto& [number, sum] : sums) {
        found.templates.push_back(number);
        found.features.push_back(sum);
    }
    found.labels.assign(static_cast<std::size_t>(layout.n_labels()), 0.0);
    const Side side = side_of(head, dependent);
    keys.clear();
    features.label_of_arc(head, dependent, keys);
    features.label_of_dependent(dependent, side, keys);
    features.label_of_head(head, side, keys);
    layout.labels.each(keys, [&](std::int32_t feature) {
        const double* weights = w + layout.first_weight(feature);
        for (const std::int32_t r : layout.labels_of(feature)) found.labels[r] += *weights++;
    });
    return found;
}

}  // namespace crfkit
