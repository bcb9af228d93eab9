#include "trees/second_order_parser.hpp"

#include <algorithm>
#include <utility>

#include "base/threads.hpp"
#include "trees/parser.hpp"
#include "trees/second_order_scores.hpp"

namespace crfkit {

// What one thread needs to score sentences.
struct SecondOrderParser::Scorer {
    Scorer(const PruningModel& pruning, const ArcLayout& layout, bool one_root)
        : pruner(pruning, one_root), features(layout) {}

    Pruner pruner;
    SentenceFeatures features;
    PartGraph parts;
    SecondOrderSums sums;
    Buffer<double> weights, scores, probs;
};

SecondOrderParser::SecondOrderParser(std::shared_ptr<const PruningModel> pruning,
                                     std::shared_ptr<const ArcLayout> layout, const double* w, bool one_root)
    : pruning_(std::move(pruning)),
      layout_(std::move(layout)),
      weights_(w, w + layout_->n_weights()),
      one_root_(one_root) {}

// Calls answer(n, scorer) for every sentence.
template <class Function>
void SecondOrderParser::each(const Treebank& treebank, const KnownTrees* known, int n_threads,
                             const Function& answer) const {
    std::vector<std::unique_ptr<Scorer>> scorers(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(treebank.n_sentences(), n_threads, [&](std::int64_t n, int worker) {
        if (!scorers[worker]) scorers[worker] = std::make_unique<Scorer>(*pruning_, *layout_, one_root_);
        Scorer& scorer = *scorers[worker];
        const std::vector<Arc> arcs = scorer.pruner.find(treebank, n, known);
        scorer.parts.build(treebank.length(n), arcs, one_root_);
        scorer.features.load(treebank, n, scorer.parts);
        scorer.features.score_at(weights_.data(), scorer.weights, scorer.scores);
        answer(n, scorer);
    });
}

void SecondOrderParser::best(const Treebank& treebank, bool minimum_risk, std::int32_t* heads,
                             std::int32_t* labels, int n_threads) const {
    const std::int64_t R = layout_->n_labels();
    each(treebank, nullptr, n_threads, [&](std::int64_t n, Scorer& scorer) {
        const double* scores = scorer.scores.data();
        if (minimum_risk) {
            scorer.probs.resize(scorer.features.n_scores());
            scorer.sums.marginals(scorer.parts, R, scores, scorer.probs.data());
            std::fill(scorer.probs.begin() + scorer.parts.n_arcs() * R, scorer.probs.end(), 0.0);
            scores = scorer.probs.data();
        }
        const ScoredTree found = scorer.sums.best(scorer.parts, R, scores);
        std::copy(found.heads.begin(), found.heads.end(), heads + treebank.sentence_ptr[n]);
        std::copy(found.labels.begin(), found.labels.end(), labels + treebank.sentence_ptr[n]);
    });
}

void SecondOrderParser::log_partitions(const Treebank& treebank, const KnownTrees* known, double* out,
                                       int n_threads) const {
    const std::int64_t R = layout_->n_labels();
    each(treebank, known, n_threads, [&](std::int64_t n, Scorer& scorer) {
        out[n] = scorer.sums.log_partition(scorer.parts, R, scorer.scores.data());
        if (!known) return;
        known->forbid(treebank.sentence_ptr[n], scorer.parts.arcs(), R, scorer.scores.data());
        out[n] = scorer.sums.log_partition(scorer.parts, R, scorer.scores.data()) - out[n];
    });
}

void SecondOrderParser::marginals(const Treebank& treebank, bool labelled, double* out, int n_threads) const {
    const std::int64_t R = layout_->n_labels();
    const std::vector<std::int64_t> places = arc_places(treebank);
    std::fill_n(out, places.back() * (labelled ? R : 1), 0.0);
    each(treebank, nullptr, n_threads, [&](std::int64_t n, Scorer& scorer) {
        scorer.probs.resize(scorer.features.n_scores());
        scorer.sums.marginals(scorer.parts, R, scorer.scores.data(), scorer.probs.data());
        const double* probs = scorer.probs.data();
        for (const Arc& arc : scorer.parts.arcs()) {
            const std::int64_t place = places[n] + arc.head * scorer.features.side() + arc.dependent;
            for (std::int64_t r = 0; r < R; ++r) out[labelled ? place * R + r : place] += probs[r];
            probs += R;
        }
    });
}

}  // namespace crfkit
