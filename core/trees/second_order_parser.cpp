#include "trees/second_order_parser.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/threads.hpp"
#include "trees/parser.hpp"
#include "trees/second_order_sums.hpp"

namespace crfkit {

// What one thread needs to score sentences.
struct SecondOrderParser::Scorer {
    Scorer(const PruningModel& pruning, const ArcWeights& weights, bool one_root, const SumsOf& open)
        : pruner(pruning, one_root), arcs(weights), sums(open()) {}

    Pruner pruner;
    ArcScorer arcs;
    std::unique_ptr<SecondOrderSums> sums;
    Buffer<double> scores, probs;
    double log_z = 0;

    const double* marginals(std::int64_t n_labels) {
        probs.resize(scores.size());
        log_z = sums->marginals(n_labels, scores.data(), probs.data());
        return probs.data();
    }
};

SecondOrderParser::SecondOrderParser(std::shared_ptr<const PruningModel> pruning,
                                     std::shared_ptr<const ArcLayout> layout, const double* w, bool one_root,
                                     SumsOf sums)
    : pruning_(std::move(pruning)),
      weights_(std::move(layout), w),
      one_root_(one_root),
      open_sums_(std::move(sums)) {}

// Calls answer(n, scorer) for every sentence.
template <class Function>
void SecondOrderParser::each(const Treebank& treebank, const KnownTrees* known, int n_threads,
                             const Function& answer) const {
    std::vector<std::unique_ptr<Scorer>> scorers(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(treebank.n_sentences(), n_threads, [&](std::int64_t n, int worker) {
        if (!scorers[worker])
            scorers[worker] = std::make_unique<Scorer>(*pruning_, weights_, one_root_, open_sums_);
        Scorer& scorer = *scorers[worker];
        score(treebank, n, known, scorer);
        answer(n, scorer);
    });
}

void SecondOrderParser::score(const Treebank& treebank, std::int64_t n, const KnownTrees* known,
                              Scorer& scorer) const {
    scorer.sums->load(treebank.length(n), scorer.pruner.find(treebank, n, known));
    const TreeParts& parts = scorer.sums->parts();
    scorer.scores.resize(parts.n_scores(layout().n_labels()));
    scorer.arcs.load(treebank, n);
    scorer.arcs.fill(parts, scorer.scores.data());
}

void SecondOrderParser::best(const Treebank& treebank, bool minimum_risk, std::int32_t* heads,
                             std::int32_t* labels, int n_threads) const {
    const std::int64_t R = layout().n_labels();
    each(treebank, nullptr, n_threads, [&](std::int64_t n, Scorer& scorer) {
        const ScoredTree found =
            minimum_risk ? scorer.sums->minimum_risk(R, scorer.marginals(R))
                         : scorer.sums->bounded_best(R, scorer.scores.data(), kMostIterations).tree;
        std::copy(found.heads.begin(), found.heads.end(), heads + treebank.sentence_ptr[n]);
        std::copy(found.labels.begin(), found.labels.end(), labels + treebank.sentence_ptr[n]);
    });
}

std::vector<BoundedTree> SecondOrderParser::bounded_best(const Treebank& treebank,
                                                         std::int64_t most_iterations, int n_threads) const {
    std::vector<BoundedTree> found(static_cast<std::size_t>(treebank.n_sentences()));
    each(treebank, nullptr, n_threads, [&](std::int64_t n, Scorer& scorer) {
        found[n] = scorer.sums->bounded_best(layout().n_labels(), scorer.scores.data(), most_iterations);
    });
    return found;
}

std::vector<std::vector<ScoredTree>> SecondOrderParser::k_best(const Treebank& treebank, std::int64_t k,
                                                               int n_threads) const {
    std::vector<std::vector<ScoredTree>> found(static_cast<std::size_t>(treebank.n_sentences()));
    each(treebank, nullptr, n_threads, [&](std::int64_t n, Scorer& scorer) {
        found[n] = scorer.sums->k_best(layout().n_labels(), scorer.scores.data(), k);
    });
    return found;
}

void SecondOrderParser::log_partitions(const Treebank& treebank, double* out, int n_threads) const {
    each(treebank, nullptr, n_threads, [&](std::int64_t n, Scorer& scorer) {
        scorer.marginals(layout().n_labels());
        out[n] = scorer.log_z;
    });
}

void SecondOrderParser::log_likelihoods(const Treebank& treebank, const KnownTrees& known, bool add_arcs,
                                        double* out, int n_threads) const {
    const std::int64_t R = layout().n_labels();
    each(treebank, add_arcs ? &known : nullptr, n_threads, [&](std::int64_t n, Scorer& scorer) {
        scorer.marginals(R);
        out[n] = scorer.log_z;
        known.forbid(treebank.sentence_ptr[n], scorer.sums->parts().arcs(), R, scorer.scores.data());
        try {
            scorer.marginals(R);
            out[n] = scorer.log_z - out[n];
        } catch (const NoTree&) {
            out[n] = kNever;
        }
    });
}

ScoredParts SecondOrderParser::parts(const Treebank& treebank, std::int64_t n) const {
    Scorer scorer(*pruning_, weights_, one_root_, open_sums_);
    score(treebank, n, nullptr, scorer);
    const TreeParts& parts = scorer.sums->parts();
    return {{parts.arcs().begin(), parts.arcs().end()},
            parts.second_order(),
            {scorer.scores.begin(), scorer.scores.end()}};
}

// The parts of the arc h → m: siblings of m under h, and m below h below another word, or above its own
// dependents.
std::vector<HeadContext> SecondOrderParser::explain(const Treebank& treebank, std::int64_t n,
                                                    std::int64_t dependent,
                                                    std::span<const std::int32_t> heads) const {
    Scorer scorer(*pruning_, weights_, one_root_, open_sums_);
    score(treebank, n, nullptr, scorer);
    const std::int64_t R = layout().n_labels();
    const TreeParts& parts = scorer.sums->parts();
    scorer.marginals(R);
    const double log_z = scorer.log_z;
    const std::vector<double> scores(scorer.scores.begin(), scorer.scores.end());
    std::vector<HeadContext> found;
    for (const std::int32_t head : heads) {
        std::copy(scores.begin(), scores.end(), scorer.scores.begin());
        for (std::int64_t a = 0; a < parts.n_arcs(); ++a)
            if (parts.arcs()[a].dependent == dependent && parts.arcs()[a].head != head)
                std::fill_n(scorer.scores.data() + a * R, R, -INFINITY);
        const double* probs = scorer.marginals(R);
        HeadContext context{scorer.log_z - log_z, 0, 0};
        found.push_back(context);
        if (!std::isfinite(scorer.log_z)) {
            found.back().log_probability = -INFINITY;
            continue;
        }
        for (std::int64_t k = 0, at = parts.n_arcs() * R; k < parts.n_parts() - parts.n_arcs(); ++k, ++at) {
            const SecondOrderPart& part = parts.second_order()[k];
            const double mean = probs[at] > 0 ? probs[at] * scores[at] : 0.0;
            const bool below = part.head == head && part.dependent == dependent;
            if (part.kind == SecondOrderPart::Kind::siblings) {
                if (below || (part.head == head && part.other == dependent)) found.back().siblings += mean;
            } else if (below || (part.other == head && part.head == dependent)) {
                found.back().grandparents += mean;
            }
        }
    }
    return found;
}

void SecondOrderParser::marginals(const Treebank& treebank, bool labelled, double* out, int n_threads) const {
    const std::int64_t R = layout().n_labels();
    const std::vector<std::int64_t> places = arc_places(treebank);
    std::fill_n(out, places.back() * (labelled ? R : 1), 0.0);
    each(treebank, nullptr, n_threads, [&](std::int64_t n, Scorer& scorer) {
        const double* probs = scorer.marginals(R);
        for (const Arc& arc : scorer.sums->parts().arcs()) {
            const std::int64_t place = places[n] + arc.head * (treebank.length(n) + 1) + arc.dependent;
            for (std::int64_t r = 0; r < R; ++r) out[labelled ? place * R + r : place] += probs[r];
            probs += R;
        }
    });
}

}  // namespace crfkit
