#include "trees/parser.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "trees/arc_scorer.hpp"
#include "trees/sums.hpp"

namespace crfkit {
namespace {

// What one thread needs to score sentences.
struct Scorer {
    explicit Scorer(const ArcWeights& weights) : arcs(weights) {}

    ArcScorer arcs;
    Buffer<double> scores, sums;
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
    : weights_(std::move(layout), w), one_root_(one_root) {}

// Calls answer(n, tree) for every sentence.
template <class Function>
void TreeParser::each(const Treebank& treebank, int n_threads, const Function& answer) const {
    std::vector<std::unique_ptr<Scorer>> scorers(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(treebank.n_sentences(), n_threads, [&](std::int64_t n, int worker) {
        if (!scorers[worker]) scorers[worker] = std::make_unique<Scorer>(weights_);
        Scorer& scorer = *scorers[worker];
        scorer.arcs.load(treebank, n);
        const std::int64_t n_words = treebank.length(n), R = layout().n_labels();
        scorer.scores.resize((n_words + 1) * (n_words + 1) * R);
        scorer.arcs.fill(scorer.scores.data());
        answer(n, TreeView{n_words, R, scorer.scores.data(), one_root_}, scorer.scores);
    });
}

// A tree has the best label of each of its arcs, so that labels need not be kept: P(h → m, r) = P(h → m) ·
// P(r | h → m), and P(r | h → m) = exp(score_r − log Σ_r exp(score_r)) is largest for the label with the
// highest score.
void TreeParser::best(const Treebank& treebank, bool minimum_risk, std::int32_t* heads, std::int32_t* labels,
                      int n_threads) const {
    std::vector<std::unique_ptr<Scorer>> scorers(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(treebank.n_sentences(), n_threads, [&](std::int64_t n, int worker) {
        if (!scorers[worker]) scorers[worker] = std::make_unique<Scorer>(weights_);
        Scorer& scorer = *scorers[worker];
        const std::int64_t n_words = treebank.length(n), size = (n_words + 1) * (n_words + 1);
        scorer.scores.resize(size);
        scorer.sums.resize(size);
        scorer.arcs.load(treebank, n);
        scorer.arcs.sum_labels(scorer.scores.data(), scorer.sums.data());
        if (minimum_risk) {
            Buffer<double> probs(size);
            tree_marginals({n_words, 1, scorer.sums.data(), one_root_}, probs.data());
            for (std::int64_t arc = 0; arc < size; ++arc)
                scorer.scores[arc] = probs[arc] * std::exp(scorer.scores[arc] - scorer.sums[arc]);
        }
        const ScoredTree found = best_tree({n_words, 1, scorer.scores.data(), one_root_});
        for (std::int64_t m = 1; m <= n_words; ++m) {
            const std::int64_t word = treebank.sentence_ptr[n] + m - 1;
            heads[word] = found.heads[m - 1];
            labels[word] = scorer.arcs.best_label(heads[word], m);
        }
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
