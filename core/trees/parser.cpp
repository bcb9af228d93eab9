#include "trees/parser.hpp"

#include <algorithm>
#include <utility>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "trees/sentence_features.hpp"
#include "trees/sums.hpp"

namespace crfkit {
namespace {

// What one thread needs to score sentences.
struct Scorer {
    explicit Scorer(const ArcLayout& layout) : features(layout) {}

    SentenceFeatures features;
    Buffer<double> weights, scores;
};

}  // namespace

std::vector<std::int64_t> arc_places(const Treebank& treebank) {
    std::vector<std::int64_t> places{0};
    for (std::int64_t n = 0; n < treebank.n_sentences(); ++n) {
        const std::int64_t side = treebank.length(n) + 1;
        places.push_back(places.back() + side * side);
    }
    return places;
}

TreeParser::TreeParser(std::shared_ptr<const ArcLayout> layout, const double* w, bool one_root)
    : layout_(std::move(layout)), weights_(w, w + layout_->n_weights()), one_root_(one_root) {}

// Calls answer(n, tree) for every sentence.
template <class Function>
void TreeParser::each(const Treebank& treebank, int n_threads, const Function& answer) const {
    std::vector<std::unique_ptr<Scorer>> scorers(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(treebank.n_sentences(), n_threads, [&](std::int64_t n, int worker) {
        if (!scorers[worker]) scorers[worker] = std::make_unique<Scorer>(*layout_);
        Scorer& scorer = *scorers[worker];
        scorer.features.load(treebank, n);
        scorer.features.score_at(weights_.data(), scorer.weights, scorer.scores);
        answer(n, TreeView{treebank.length(n), layout_->n_labels(), scorer.scores.data(), one_root_},
               scorer.scores);
    });
}

void TreeParser::best(const Treebank& treebank, bool minimum_risk, std::int32_t* heads, std::int32_t* labels,
                      int n_threads) const {
    each(treebank, n_threads, [&](std::int64_t n, TreeView tree, Buffer<double>& scores) {
        if (minimum_risk) {
            Buffer<double> marginals(tree.size());
            tree_marginals(tree, marginals.data());
            std::copy(marginals.begin(), marginals.end(), scores.begin());
        }
        const ScoredTree found = best_tree(tree);
        std::copy(found.heads.begin(), found.heads.end(), heads + treebank.sentence_ptr[n]);
        std::copy(found.labels.begin(), found.labels.end(), labels + treebank.sentence_ptr[n]);
    });
}

std::vector<std::vector<ScoredTree>> TreeParser::k_best(const Treebank& treebank, std::int64_t k,
                                                        int n_threads) const {
    std::vector<std::vector<ScoredTree>> found(static_cast<std::size_t>(treebank.n_sentences()));
    each(treebank, n_threads,
         [&](std::int64_t n, TreeView tree, Buffer<double>&) { found[n] = k_best_trees(tree, k); });
    return found;
}

void TreeParser::log_partitions(const Treebank& treebank, const KnownTrees* known, double* out,
                                int n_threads) const {
    each(treebank, n_threads, [&](std::int64_t n, TreeView tree, Buffer<double>& scores) {
        if (known) known->forbid(treebank.sentence_ptr[n], tree.n_words, tree.n_labels, scores.data());
        out[n] = tree_log_partition(tree);
    });
}

void TreeParser::marginals(const Treebank& treebank, bool labelled, double* out, int n_threads) const {
    const std::vector<std::int64_t> places = arc_places(treebank);
    each(treebank, n_threads, [&](std::int64_t n, TreeView tree, Buffer<double>&) {
        if (labelled) {
            tree_marginals(tree, out + places[n] * tree.n_labels);
            return;
        }
        const ArcSums arcs = summed_arcs(tree);
        tree_marginals({tree.n_words, 1, arcs.scores.data(), tree.one_root}, out + places[n]);
    });
}

void TreeParser::scores(const Treebank& treebank, double* out, int n_threads) const {
    const std::vector<std::int64_t> places = arc_places(treebank);
    each(treebank, n_threads, [&](std::int64_t n, TreeView tree, Buffer<double>& scores) {
        std::copy(scores.begin(), scores.end(), out + places[n] * tree.n_labels);
    });
}

}  // namespace crfkit
