#include "trees/arc_layout.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/interruption.hpp"
#include "base/lists.hpp"
#include "trees/arc_features.hpp"
#include "trees/key_table.hpp"
#include "trees/tree_shape.hpp"

namespace crfkit {
namespace {

struct Pair {
    Key key;
    std::int32_t label;
    bool operator<(const Pair& other) const {
        return key != other.key ? key < other.key : label < other.label;
    }
};

// Keys that occur at least `min_count` times, ascending.
std::vector<Key> frequent(std::vector<Key> keys, std::int64_t min_count) {
    std::sort(keys.begin(), keys.end());
    std::size_t kept = 0;
    for (std::size_t i = 0, end; i < keys.size(); i = end) {
        for (end = i + 1; end < keys.size() && keys[end] == keys[i];) ++end;
        if (static_cast<std::int64_t>(end - i) >= min_count) keys[kept++] = keys[i];
    }
    keys.resize(kept);
    keys.shrink_to_fit();
    return keys;
}

void append(std::vector<Key>& keys, const KeyList& list) {
    keys.insert(keys.end(), list.keys().begin(), list.keys().end());
}

// Calls seen(features, head, dependent, label) for every arc that is known; label −1 is unknown.
template <class Function>
void each_known_arc(const Treebank& treebank, const KnownTrees& trees, const Function& seen) {
    ArcFeatures features;
    for (std::int64_t n = 0; n < treebank.n_sentences(); ++n) {
        check_interruption();
        features.load(treebank, n);
        const std::int64_t first = treebank.sentence_ptr[n];
        for (std::int64_t m = 1; m <= features.n_words(); ++m)
            if (const std::int32_t head = trees.heads[first + m - 1]; head >= 0)
                seen(features, head, m, trees.labels[first + m - 1]);
    }
}

// Keys of siblings and grandparents of the trees that are known.
void add_second_order(const Treebank& treebank, const KnownTrees& trees, std::vector<Key>& keys) {
    ArcFeatures features;
    TreeShape shape;
    for (std::int64_t n = 0; n < treebank.n_sentences(); ++n) {
        check_interruption();
        const std::span heads(trees.heads.data() + treebank.sentence_ptr[n],
                              static_cast<std::size_t>(treebank.length(n)));
        if (std::any_of(heads.begin(), heads.end(), [](std::int32_t head) { return head < 0; })) continue;
        features.load(treebank, n);
        shape.load(heads);
        KeyList here;
        shape.each_second_order([&](const SecondOrderPart& part) { add_keys(features, part, here); });
        append(keys, here);
    }
}

}  // namespace

ArcLayout::ArcLayout(std::int32_t n_labels, std::vector<Key> of_arcs, std::vector<Key> of_labels,
                     std::vector<std::int64_t> ptr, std::vector<std::int32_t> of_pairs, bool coarse,
                     VectorLayout of_vectors)
    : arc_keys(std::move(of_arcs)),
      label_keys(std::move(of_labels)),
      pair_ptr(std::move(ptr)),
      pair_labels(std::move(of_pairs)),
      vectors(std::move(of_vectors)),
      n_labels_(n_labels),
      coarse_(coarse) {
    if (n_labels < 1) throw std::invalid_argument("there must be at least one label");
    check_keys(arc_keys);
    check_keys(label_keys);
    check_label_lists(pair_ptr, pair_labels, n_label_features(), n_labels, "pair");
}

ArcLayout ArcLayout::learn(const Treebank& treebank, const KnownTrees& trees, std::int32_t n_labels,
                           std::int64_t min_count, int order) {
    trees.check(treebank, n_labels);
    std::vector<Key> arc_keys;
    KeyList keys;
    each_known_arc(treebank, trees, [&](const ArcFeatures& features, std::int64_t h, std::int64_t m, auto) {
        keys.clear();
        features.arc(h, m, keys);
        append(arc_keys, keys);
    });
    if (order > 1) add_second_order(treebank, trees, arc_keys);
    arc_keys = frequent(std::move(arc_keys), min_count);
    std::vector<Pair> pairs;
    each_known_arc(treebank, trees,
                   [&](const ArcFeatures& features, std::int64_t h, std::int64_t m, std::int32_t label) {
                       if (label < 0) return;
                       keys.clear();
                       features.label_of_dependent(m, side_of(h, m), keys);
                       features.label_of_head(h, side_of(h, m), keys);
                       features.label_of_arc(h, m, keys);
                       for (const Key key : keys.keys()) pairs.push_back({key, label});
                   });
    std::sort(pairs.begin(), pairs.end());
    std::vector<Key> label_keys;
    std::vector<std::int64_t> ptr{0};
    std::vector<std::int32_t> of_pairs;
    for (std::size_t i = 0, end; i < pairs.size(); i = end) {
        for (end = i + 1; end < pairs.size() && pairs[end].key == pairs[i].key;) ++end;
        if (static_cast<std::int64_t>(end - i) < min_count) continue;
        label_keys.push_back(pairs[i].key);
        for (std::size_t k = i; k < end; ++k)
            if (k == i || pairs[k].label != pairs[k - 1].label) of_pairs.push_back(pairs[k].label);
        ptr.push_back(static_cast<std::int64_t>(of_pairs.size()));
    }
    return ArcLayout(n_labels, std::move(arc_keys), std::move(label_keys), std::move(ptr),
                     std::move(of_pairs), false, VectorLayout::learn(treebank, trees, n_labels, min_count));
}

ArcLayout ArcLayout::learn_coarse(const Treebank& treebank, const KnownTrees& trees, std::int64_t min_count) {
    std::vector<Key> arc_keys;
    KeyList keys;
    each_known_arc(treebank, trees, [&](const ArcFeatures& features, std::int64_t h, std::int64_t m, auto) {
        keys.clear();
        features.coarse_arc(h, m, keys);
        append(arc_keys, keys);
    });
    return ArcLayout(1, frequent(std::move(arc_keys), min_count), {}, {0}, {}, true);
}

}  // namespace crfkit
