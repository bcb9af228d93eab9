#include "trees/second_order_loss.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "trees/second_order_sums.hpp"
#include "trees/sentence_features.hpp"
#include "trees/summed_loss.hpp"
#include "trees/tree_shape.hpp"

namespace crfkit {
namespace {

// The sentences of a treebank, one at a time, at the weights that each of them touches.
class PartSequences final : public SequenceSource {
  public:
    PartSequences(const ArcLayout& arc_layout, const Treebank& sentences, const KnownTrees& known,
                  const CandidateArcs& arcs, SumsOf sums)
        : layout(arc_layout),
          treebank(sentences),
          trees(known),
          candidates(arcs),
          open_sums(std::move(sums)),
          index(arc_layout),
          store(sentences.n_sentences()) {}

    std::int64_t n_sequences() const override { return treebank.n_sentences(); }
    std::int64_t n_slots() const override { return layout.n_weights(); }
    void pack(const double* w, double, double* slots) const override { std::copy_n(w, n_slots(), slots); }
    void unpack(const double* slots, double* w) const override { std::copy_n(slots, n_slots(), w); }
    void each_slot_range(const std::function<void(SlotRange)>& function) const override {
        layout.each_slot_range(function);
    }
    std::unique_ptr<SequenceLoss> open() const override;

    std::span<const std::int32_t> heads(std::int64_t n) const {
        return {trees.heads.data() + treebank.sentence_ptr[n], static_cast<std::size_t>(treebank.length(n))};
    }
    std::span<const std::int32_t> labels(std::int64_t n) const {
        return {trees.labels.data() + treebank.sentence_ptr[n], static_cast<std::size_t>(treebank.length(n))};
    }
    bool is_known(std::int64_t n) const {
        const auto unknown = [](std::int32_t number) { return number < 0; };
        return std::none_of(heads(n).begin(), heads(n).end(), unknown) &&
               std::none_of(labels(n).begin(), labels(n).end(), unknown);
    }
    void forbid(std::int64_t n, std::span<const Arc> arcs, double* scores) const {
        trees.forbid(treebank.sentence_ptr[n], arcs, layout.n_labels(), scores);
    }

    const ArcLayout& layout;
    const Treebank& treebank;
    const KnownTrees& trees;
    const CandidateArcs& candidates;
    const SumsOf open_sums;
    const FeatureIndex index;
    mutable FeatureStore store;
};

// One of them. Residuals: weight · (P − P_gold) of labelled arcs [arcs, R], then of the parts of second
// order.
class PartSequence final : public SequenceLoss {
  public:
    explicit PartSequence(const PartSequences& source)
        : source_(source), features_(source.layout, source.index, source.store), sums_(source.open_sums()) {}

    void load(std::int64_t n) override {
        n_ = n;
        sums_->load(source_.treebank.length(n), source_.candidates.of(n));
        features_.load(source_.treebank, n, parts());
        clear();
        features_.each_range([this](std::int64_t begin, std::int64_t end) { touch(begin, end); });
    }
    std::int64_t n_residuals() const override { return features_.n_scores(); }
    double differentiate(const double* weights, double* residuals) override {
        const double weight = source_.trees.weights[n_];
        scores_.resize(features_.n_scores());
        features_.score(weights, scores_.data());
        const double log_z = sums_->marginals(R(), scores_.data(), residuals);
        const double log_gold =
            source_.is_known(n_) ? subtract_known(residuals) : subtract_partly_known(residuals);
        for (std::int64_t i = 0; i < features_.n_scores(); ++i) residuals[i] *= weight;
        return weight * (log_z - log_gold);
    }
    void gradient(const double* residuals, double* gradient) override {
        features_.gradient(residuals, gradient);
    }
    void hessian_vector(const double* weights, const double* direction, double* residuals) {
        const double weight = source_.trees.weights[n_];
        const std::int64_t size = features_.n_scores();
        for (Buffer<double>* buffer : {&scores_, &moves_, &changes_}) buffer->resize(size);
        features_.score(weights, scores_.data());
        features_.score(direction, moves_.data());
        sums_->hessian_vector(R(), scores_.data(), moves_.data(), residuals);
        for (std::int64_t i = 0; i < size; ++i) residuals[i] *= weight;
        if (source_.is_known(n_)) return;
        source_.forbid(n_, parts().arcs(), scores_.data());
        sums_->hessian_vector(R(), scores_.data(), moves_.data(), changes_.data());
        for (std::int64_t i = 0; i < size; ++i) residuals[i] -= weight * changes_[i];
    }

  private:
    std::int64_t R() const { return source_.layout.n_labels(); }
    const TreeParts& parts() const { return sums_->parts(); }

    // One tree agrees: its score.
    double subtract_known(double* residuals) {
        shape_.load(source_.heads(n_));
        double score = 0;
        std::int64_t at = 0;
        const auto subtract = [&](std::int64_t place) {
            score += scores_[place];
            residuals[place] -= 1;
        };
        for (const Arc& arc : parts().arcs()) {
            if (shape_.has(arc)) subtract(at + source_.labels(n_)[arc.dependent - 1]);
            at += R();
        }
        for (const SecondOrderPart& part : parts().second_order()) {
            if (shape_.has(part)) subtract(at);
            ++at;
        }
        return score;
    }

    // The sum over all trees that agree.
    double subtract_partly_known(double* residuals) {
        source_.forbid(n_, parts().arcs(), scores_.data());
        probs_.resize(features_.n_scores());
        const double log_z = sums_->marginals(R(), scores_.data(), probs_.data());
        for (std::int64_t i = 0; i < features_.n_scores(); ++i) residuals[i] -= probs_[i];
        return log_z;
    }

    const PartSequences& source_;
    SentenceFeatures features_;
    const std::unique_ptr<SecondOrderSums> sums_;
    TreeShape shape_;
    std::int64_t n_ = 0;
    Buffer<double> scores_, moves_, probs_, changes_;
};

std::unique_ptr<SequenceLoss> PartSequences::open() const { return std::make_unique<PartSequence>(*this); }

// Where a parser is wrong: the best tree of a sentence at the current weights against the right one.
class PartMistakes final : public Mistakes {
  public:
    PartMistakes(const PartSequences& source, const double* w)
        : source_(source),
          w_(w),
          features_(source.layout, source.index, source.store),
          sums_(source.open_sums()) {}

    std::int64_t n_sequences() const override { return source_.n_sequences(); }
    double weight(std::int64_t n) const override { return source_.trees.weights[n]; }
    void read_weights() override {}
    // d = φ(right tree) − φ(predicted tree): of the parts that differ.
    std::int64_t find(std::int64_t n, Difference& difference) override {
        const std::int64_t R = source_.layout.n_labels();
        sums_->load(source_.treebank.length(n), source_.candidates.of(n));
        features_.load(source_.treebank, n, parts());
        features_.score_at(w_, weights_, scores_);
        const ScoredTree predicted = sums_->best(R, scores_.data());
        source_.forbid(n, parts().arcs(), scores_.data());
        const ScoredTree right = sums_->best(R, scores_.data());
        std::int64_t n_wrong = 0;
        for (std::size_t i = 0; i < right.heads.size(); ++i) {
            if (right.heads[i] == predicted.heads[i] && right.labels[i] == predicted.labels[i]) continue;
            ++n_wrong;
            const auto m = static_cast<std::int64_t>(i) + 1;
            const auto add = [&](const ScoredTree& tree, double sign) {
                features_.each_weight(
                    tree.heads[i], m, tree.labels[i],
                    [&](std::int64_t weight, double value) { difference.add(weight, sign * value); });
            };
            add(right, 1);
            add(predicted, -1);
        }
        if (n_wrong > 0) add_second_order(right, predicted, difference);
        return n_wrong;
    }
    void read_changes(const Difference&) override {}

  private:
    const TreeParts& parts() const { return sums_->parts(); }
    void add_second_order(const ScoredTree& right, const ScoredTree& predicted, Difference& difference) {
        TreeShape wanted, found;
        wanted.load(right.heads);
        found.load(predicted.heads);
        std::int64_t number = 0;
        for (const SecondOrderPart& part : parts().second_order()) {
            const int sign = int(wanted.has(part)) - int(found.has(part));
            if (sign != 0)
                features_.each_weight(
                    number, [&](std::int64_t weight, double value) { difference.add(weight, sign * value); });
            ++number;
        }
    }

    const PartSequences& source_;
    const double* w_;
    SentenceFeatures features_;
    const std::unique_ptr<SecondOrderSums> sums_;
    Buffer<double> weights_, scores_;
};

KnownTrees checked(KnownTrees trees, const ArcLayout& layout, const Treebank& treebank) {
    trees.check(treebank, layout.n_labels());
    return trees;
}

// All arcs of a sentence that agree with what is known, and those that were candidates before.
std::vector<Arc> agreeing_arcs(std::span<const std::int32_t> heads, std::span<const Arc> candidates) {
    std::vector<Arc> arcs(candidates.begin(), candidates.end());
    const auto n = static_cast<std::int32_t>(heads.size());
    for (std::int32_t m = 1; m <= n; ++m)
        for (std::int32_t h = 0; h <= n; ++h)
            if (h != m && (heads[m - 1] < 0 || heads[m - 1] == h)) arcs.push_back({h, m});
    std::sort(arcs.begin(), arcs.end());
    arcs.erase(std::unique(arcs.begin(), arcs.end()), arcs.end());
    return arcs;
}

// The candidates, and where no tree of them agrees with the heads that are known, all arcs that do. Throws
// std::invalid_argument where still no tree agrees.
CandidateArcs with_agreeing_trees(CandidateArcs candidates, const Treebank& treebank, const KnownTrees& trees,
                                  const SumsOf& open) {
    const std::unique_ptr<SecondOrderSums> sums = open();
    Buffer<double> scores, probs;
    const auto agrees = [&](std::int64_t n, std::span<const Arc> arcs) {
        sums->load(treebank.length(n), arcs);
        scores.assign(sums->parts().n_scores(1), 0.0);
        probs.resize(scores.size());
        for (std::size_t i = 0; i < arcs.size(); ++i)
            if (const std::int32_t head = trees.heads[treebank.sentence_ptr[n] + arcs[i].dependent - 1];
                head >= 0 && head != arcs[i].head)
                scores[static_cast<std::int64_t>(i)] = kNever;
        try {
            return sums->marginals(1, scores.data(), probs.data()) > kNever;
        } catch (const NoTree&) {
            return false;
        }
    };
    CandidateArcs found;
    for (std::int64_t n = 0; n < treebank.n_sentences(); ++n) {
        const std::span heads(trees.heads.data() + treebank.sentence_ptr[n],
                              static_cast<std::size_t>(treebank.length(n)));
        std::vector<Arc> arcs(candidates.of(n).begin(), candidates.of(n).end());
        const bool partly =
            std::any_of(heads.begin(), heads.end(), [](std::int32_t head) { return head < 0; });
        if (partly && !agrees(n, arcs)) {
            arcs = agreeing_arcs(heads, arcs);
            if (!agrees(n, arcs))
                throw std::invalid_argument("sentence " + std::to_string(n) +
                                            ": no projective tree agrees with the heads that are known");
        }
        found.arcs.insert(found.arcs.end(), arcs.begin(), arcs.end());
        found.sentence_ptr.push_back(static_cast<std::int64_t>(found.arcs.size()));
    }
    return found;
}

class SecondOrderLoss final : public DataLoss {
  public:
    SecondOrderLoss(std::shared_ptr<const ArcLayout> layout, std::shared_ptr<const Treebank> treebank,
                    KnownTrees trees, CandidateArcs candidates, SumsOf sums, int threads)
        : DataLoss(layout->n_weights(), treebank->n_sentences(), threads),
          layout_(std::move(layout)),
          treebank_(std::move(treebank)),
          trees_(checked(std::move(trees), *layout_, *treebank_)),
          candidates_(with_agreeing_trees(std::move(candidates), *treebank_, trees_, sums)),
          sequences_(*layout_, *treebank_, trees_, candidates_, std::move(sums)) {}

    double evaluate(const double* w, double* gradient) override {
        return summed_.evaluate(sequences_, w, nullptr, gradient, n_threads);
    }
    void hessian_vector(const double* w, const double* v, double* out) override {
        summed_.evaluate(sequences_, w, v, out, n_threads);
    }
    const SequenceSource& sequences() override { return sequences_; }
    std::unique_ptr<Mistakes> mistakes(const double* w) override {
        return std::make_unique<PartMistakes>(sequences_, w);
    }

  private:
    std::shared_ptr<const ArcLayout> layout_;
    std::shared_ptr<const Treebank> treebank_;
    const KnownTrees trees_;
    const CandidateArcs candidates_;
    PartSequences sequences_;
    SummedLoss<PartSequences, PartSequence> summed_;
};

}  // namespace

std::unique_ptr<DataLoss> second_order_loss(std::shared_ptr<const ArcLayout> layout,
                                            std::shared_ptr<const Treebank> treebank, KnownTrees trees,
                                            CandidateArcs candidates, SumsOf sums, int n_threads) {
    return std::make_unique<SecondOrderLoss>(std::move(layout), std::move(treebank), std::move(trees),
                                             std::move(candidates), std::move(sums), n_threads);
}

}  // namespace crfkit
