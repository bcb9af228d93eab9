#include "trees/mistakes.hpp"

#include "trees/graph.hpp"

namespace crfkit {

TreeMistakes::TreeMistakes(const ArcLayout& layout, const Treebank& treebank, const KnownTrees& trees,
                           const double* w, bool one_root)
    : layout_(layout),
      treebank_(treebank),
      trees_(trees),
      w_(w),
      one_root_(one_root),
      store_(treebank.n_sentences()),
      features_(layout, &store_) {}

// d = φ(right tree) − φ(predicted tree): of the words whose arcs or labels differ.
std::int64_t TreeMistakes::find(std::int64_t n, Difference& difference) {
    const std::int64_t first = treebank_.sentence_ptr[n], n_words = treebank_.length(n);
    features_.load(treebank_, n);
    features_.score_at(w_, weights_, scores_);
    const ScoredTree predicted = best_tree({n_words, layout_.n_labels(), scores_.data(), one_root_});
    const ScoredTree right = right_tree(first, predicted);
    std::int64_t n_wrong = 0;
    for (std::int64_t i = 0; i < n_words; ++i) {
        if (right.heads[i] == predicted.heads[i] && right.labels[i] == predicted.labels[i]) continue;
        ++n_wrong;
        const auto add = [&](const ScoredTree& tree, double sign) {
            features_.each_weight(tree.heads[i], i + 1, tree.labels[i],
                                  [&](std::int64_t weight) { difference.add(weight, sign); });
        };
        add(right, 1);
        add(predicted, -1);
    }
    return n_wrong;
}

// The best tree that agrees with what is known.
ScoredTree TreeMistakes::right_tree(std::int64_t first, const ScoredTree& predicted) {
    const auto n_words = static_cast<std::int64_t>(predicted.heads.size()),
               R = std::int64_t(layout_.n_labels());
    bool known = true, agrees = true;
    for (std::int64_t i = 0; i < n_words; ++i) {
        const std::int32_t head = trees_.heads[first + i], label = trees_.labels[first + i];
        known &= head >= 0 && label >= 0;
        agrees &= (head < 0 || head == predicted.heads[i]) && (label < 0 || label == predicted.labels[i]);
    }
    if (agrees) return predicted;
    if (known)
        return {0,
                {trees_.heads.begin() + first, trees_.heads.begin() + first + n_words},
                {trees_.labels.begin() + first, trees_.labels.begin() + first + n_words}};
    trees_.forbid(first, n_words, R, scores_.data());
    return best_tree({n_words, R, scores_.data(), one_root_});
}

}  // namespace crfkit
