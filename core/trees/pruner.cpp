#include "trees/pruner.hpp"

#include <algorithm>
#include <memory>

#include "base/threads.hpp"
#include "trees/k_best.hpp"
#include "trees/lifting.hpp"
#include "trees/sums.hpp"

namespace crfkit {
namespace {

// Longer sentences keep fewer arcs for each word: the number of spans grows with the square of their length.
std::int64_t most_of(std::int64_t n_words, std::int64_t most) {
    constexpr std::int64_t long_sentence = 200;
    return n_words <= long_sentence ? most : std::max<std::int64_t>(most * long_sentence / n_words, 1);
}

}  // namespace

// The best tree is that of the best labels of its arcs: labels need not be kept, and memory is that of arcs.
std::vector<std::int32_t> Pruner::find_best(const Treebank& treebank, std::int64_t n,
                                            const KnownTrees* known) {
    const std::int64_t n_words = treebank.length(n), side = n_words + 1;
    scores_.resize(side * side);
    sums_.resize(side * side);
    scorer_.load(treebank, n);
    scorer_.sum_labels(scores_.data(), sums_.data());
    tree_marginals({n_words, 1, sums_.data(), one_root_}, marginals_.data());
    for (std::int64_t m = 1; m <= n_words && known; ++m)
        if (const std::int32_t head = known->heads[treebank.sentence_ptr[n] + m - 1]; head >= 0)
            for (std::int64_t h = 0; h <= n_words; ++h)
                if (h != head) scores_[h * side + m] = kNever;
    return best_tree({n_words, 1, scores_.data(), one_root_}).heads;
}

std::vector<Arc> Pruner::find(const Treebank& treebank, std::int64_t n, const KnownTrees* known) {
    const std::int64_t n_words = treebank.length(n), first = treebank.sentence_ptr[n];
    marginals_.resize((n_words + 1) * (n_words + 1));
    std::vector<std::int32_t> heads = find_best(treebank, n, known);
    std::vector<Arc> found;
    for (std::int32_t m = 1; m <= n_words; ++m) add_likely(m, n_words, found);
    for (std::int32_t m = 1; m <= n_words; ++m) found.push_back({heads[m - 1], m});
    lift_crossing_arcs(heads);
    for (std::int32_t m = 1; m <= n_words; ++m) {
        found.push_back({heads[m - 1], m});
        if (known && known->heads[first + m - 1] >= 0) found.push_back({known->heads[first + m - 1], m});
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

void Pruner::add_likely(std::int32_t m, std::int64_t n_words, std::vector<Arc>& found) {
    const auto prob = [&](std::int32_t h) { return marginals_[h * (n_words + 1) + m]; };
    heads_.clear();
    for (std::int32_t h = 0; h <= n_words; ++h)
        if (h != m) heads_.push_back(h);
    std::stable_sort(heads_.begin(), heads_.end(),
                     [&](std::int32_t a, std::int32_t b) { return prob(a) > prob(b); });
    const auto most =
        std::min<std::size_t>(static_cast<std::size_t>(most_of(n_words, model_.pruning.most)), heads_.size());
    for (std::size_t i = 0; i < most && prob(heads_[i]) >= model_.pruning.threshold * prob(heads_[0]); ++i)
        found.push_back({heads_[i], m});
}

CandidateArcs find_candidates(const PruningModel& model, const Treebank& treebank, const KnownTrees* known,
                              bool one_root, int n_threads) {
    std::vector<std::vector<Arc>> found(static_cast<std::size_t>(treebank.n_sentences()));
    std::vector<std::unique_ptr<Pruner>> pruners(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(treebank.n_sentences(), n_threads, [&](std::int64_t n, int worker) {
        if (!pruners[worker]) pruners[worker] = std::make_unique<Pruner>(model, one_root);
        found[n] = pruners[worker]->find(treebank, n, known);
    });
    CandidateArcs all;
    for (const std::vector<Arc>& arcs : found) {
        all.arcs.insert(all.arcs.end(), arcs.begin(), arcs.end());
        all.sentence_ptr.push_back(static_cast<std::int64_t>(all.arcs.size()));
    }
    return all;
}

}  // namespace crfkit
