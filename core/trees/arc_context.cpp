#include "trees/arc_context.hpp"

#include <map>

#include "trees/arc_features.hpp"
#include "trees/vector_scores.hpp"

namespace crfkit {
namespace {

// What vectors add: to the sums of templates, or to the scores of labels [R].
void add_vectors(const ArcWeights& weights, const Treebank& treebank, std::int64_t n, std::int64_t head,
                 std::int64_t dependent, std::map<std::int64_t, double>& sums, std::vector<double>& labels) {
    VectorScores vectors(weights.layout());
    if (vectors.is_empty()) return;
    vectors.load(treebank, n);
    vectors.multiply_all(weights.of_vectors());
    vectors.each_product(head, dependent, [&](std::int64_t number, std::int32_t label, double product) {
        (label < weights.layout().n_labels() ? labels[label] : sums[number]) += product;
    });
}

}  // namespace

ArcContext arc_context(const ArcWeights& weights, const Treebank& treebank, std::int64_t n, std::int64_t head,
                       std::int64_t dependent) {
    ArcFeatures features;
    features.load(treebank, n);
    KeyList keys, one;
    std::vector<Key> numbers;
    features.arc(head, dependent, keys, &numbers);
    std::map<std::int64_t, double> sums;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        *one.reserve(1) = keys.keys()[i];
        one.set_end(one.reserve(1) + 1);
        weights.each_of_arcs(one, [&](double w) { sums[static_cast<std::int64_t>(numbers[i])] += w; });
    }
    ArcContext found;
    found.labels.assign(static_cast<std::size_t>(weights.layout().n_labels()), 0.0);
    add_vectors(weights, treebank, n, head, dependent, sums, found.labels);
    for (const auto& [number, sum] : sums) {
        found.templates.push_back(number);
        found.features.push_back(sum);
    }
    const Side side = side_of(head, dependent);
    keys.clear();
    features.label_of_arc(head, dependent, keys);
    features.label_of_dependent(dependent, side, keys);
    features.label_of_head(head, side, keys);
    std::vector<ArcWeights::Range> ranges;
    weights.add_labels(keys, ranges, found.labels.data());
    return found;
}

}  // namespace crfkit
