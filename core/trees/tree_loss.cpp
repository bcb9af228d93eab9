#include "trees/tree_loss.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "kernels/tree_rows.hpp"
#include "trees/graph.hpp"
#include "trees/k_best.hpp"
#include "trees/sentence_features.hpp"
#include "trees/summed_loss.hpp"
#include "trees/sums.hpp"

namespace crfkit {
namespace {

// The sentences of a treebank, one at a time, at the weights that each of them touches. All that it is made
// from must outlive it.
class TreeSequences final : public SequenceSource {
  public:
    TreeSequences(const ArcLayout& arc_layout, const Treebank& sentences, const KnownTrees& known, bool one)
        : layout(arc_layout),
          treebank(sentences),
          trees(known),
          one_root(one),
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

    const ArcLayout& layout;
    const Treebank& treebank;
    const KnownTrees& trees;
    const bool one_root;
    const FeatureIndex index;
    mutable FeatureStore store;
};

// One of them. Scores of arcs with labels, [n + 1, n + 1, R] (head, dependent, label). A label's share of its
// arc is a softmax, and log Σ_r exp(score) is the score of the arc in the sum over all trees, so that
// training is exact:
//   ∂ log Z / ∂ score(h, m, r) = P(h → m) · share(r | h, m)
// Residuals: weight · (P − P_gold) of all labelled arcs [n + 1, n + 1, R].
class TreeSequence final : public SequenceLoss {
  public:
    explicit TreeSequence(const TreeSequences& source)
        : source_(source), features_(source.layout, source.index, source.store) {}

    void load(std::int64_t n) override {
        n_ = n;
        first_ = source_.treebank.sentence_ptr[n];
        features_.load(source_.treebank, n);
        clear();
        features_.each_range([this](std::int64_t begin, std::int64_t end) { touch(begin, end); });
    }
    std::int64_t n_residuals() const override { return features_.n_scores(); }
    // loss = weight · (log Z − log Z_gold), and its derivative by the score of each labelled arc,
    //   residual(h, m, r) = weight · (P(h → m) p_r − P_gold(h → m, r)),   p_r = exp(score_r − top) / Σ_r
    //   exp(…)
    // The residuals hold exp(score − top) first; factors_ = weight / Σ_r of these.
    double differentiate(const double* weights, double* residuals) override {
        const std::int64_t side = features_.side(), R = source_.layout.n_labels();
        const double weight = source_.trees.weights[n_];
        scores_.resize(features_.n_scores());
        features_.score(weights, scores_.data());
        sums_.assign(side * side, kNever);
        marginals_.resize(side * side);
        factors_.resize(side * side);
        shift_.resize(R);
        for (std::int64_t h = 0; h < side; ++h)
            for (std::int64_t m = 1; m < side; ++m) {
                if (h == m) continue;
                const std::int64_t arc = h * side + m;
                const double* row = scores_.data() + arc * R;
                double* shares = residuals + arc * R;
                const double top = row[tree_kernels().largest(row, R)];
                std::fill_n(shift_.data(), R, top);
                tree_kernels().weigh(row, shift_.data(), R, shares);
                double sum = 0;
                for (std::int64_t r = 0; r < R; ++r) sum += shares[r];
                sums_[arc] = top + std::log(sum);
                factors_[arc] = weight / sum;
            }
        const double log_z =
            tree_marginals({features_.n_words(), 1, sums_.data(), source_.one_root}, marginals_.data());
        for (std::int64_t arc = 0; arc < side * side; ++arc) {
            double* shares = residuals + arc * R;
            const bool exists = sums_[arc] > kNever;
            const double factor = exists ? factors_[arc] * marginals_[arc] : 0.0;
            for (std::int64_t r = 0; r < R; ++r) shares[r] = exists ? factor * shares[r] : 0.0;
        }
        const double log_gold =
            is_known() ? subtract_known(residuals, weight) : subtract_partly_known(residuals, weight);
        return weight * (log_z - log_gold);
    }
    void gradient(const double* residuals, double* gradient) override {
        features_.gradient(residuals, gradient);
    }
    // residuals = weight · (Hessian–vector product − gold Hessian–vector product) of the scores' direction.
    void hessian_vector(const double* weights, const double* direction, double* residuals) {
        const double weight = source_.trees.weights[n_];
        const std::int32_t R = source_.layout.n_labels();
        scores_.resize(features_.n_scores());
        moves_.resize(features_.n_scores());
        features_.score(weights, scores_.data());
        features_.score(direction, moves_.data());
        tree_hessian_vector({features_.n_words(), R, scores_.data(), source_.one_root}, moves_.data(),
                            residuals);
        if (is_known()) {
            for (std::int64_t i = 0; i < features_.n_scores(); ++i) residuals[i] *= weight;
            return;
        }
        const TreeView tree{features_.n_words(), R, gold_scores().data(), source_.one_root};
        changes_.resize(allowed_.size());
        tree_hessian_vector(tree, moves_.data(), changes_.data());
        for (std::size_t i = 0; i < changes_.size(); ++i)
            residuals[i] = weight * (residuals[i] - changes_[i]);
    }

  private:
    bool is_known() const {
        for (std::int64_t i = 0; i < features_.n_words(); ++i)
            if (source_.trees.heads[first_ + i] < 0 || source_.trees.labels[first_ + i] < 0) return false;
        return true;
    }

    // One tree agrees: its score.
    double subtract_known(double* residuals, double weight) const {
        const std::int64_t R = source_.layout.n_labels();
        double score = 0;
        for (std::int64_t m = 1; m <= features_.n_words(); ++m) {
            const std::int64_t at = (source_.trees.heads[first_ + m - 1] * features_.side() + m) * R +
                                    source_.trees.labels[first_ + m - 1];
            score += scores_[at];
            residuals[at] -= weight;
        }
        return score;
    }

    // The sum over all trees that agree.
    double subtract_partly_known(double* residuals, double weight) {
        const TreeView tree{features_.n_words(), source_.layout.n_labels(), gold_scores().data(),
                            source_.one_root};
        changes_.resize(allowed_.size());
        const double log_z = tree_marginals(tree, changes_.data());
        for (std::size_t i = 0; i < changes_.size(); ++i) residuals[i] -= weight * changes_[i];
        return log_z;
    }

    // The scores, and −inf where an arc or label does not agree with what is known.
    const std::vector<double>& gold_scores() {
        allowed_.assign(scores_.begin(), scores_.end());
        source_.trees.forbid(first_, features_.n_words(), source_.layout.n_labels(), allowed_.data());
        return allowed_;
    }

    const TreeSequences& source_;
    SentenceFeatures features_;
    std::int64_t n_ = 0, first_ = 0;
    Buffer<double> scores_, sums_, factors_, marginals_, moves_, shift_;
    std::vector<double> allowed_, changes_;
};

std::unique_ptr<SequenceLoss> TreeSequences::open() const { return std::make_unique<TreeSequence>(*this); }

KnownTrees checked(KnownTrees trees, const ArcLayout& layout, const Treebank& treebank) {
    trees.check(treebank, layout.n_labels());
    return trees;
}

// Where a parser is wrong: the best tree of a sentence at the current weights against the right one.
class TreeMistakes final : public Mistakes {
  public:
    TreeMistakes(const TreeSequences& source, const double* w)
        : layout_(source.layout),
          treebank_(source.treebank),
          trees_(source.trees),
          w_(w),
          one_root_(source.one_root),
          features_(source.layout, source.index, source.store) {}

    std::int64_t n_sequences() const override { return treebank_.n_sentences(); }
    double weight(std::int64_t n) const override { return trees_.weights[n]; }
    void read_weights() override {}
    // d = φ(right tree) − φ(predicted tree): of the words whose arcs or labels differ.
    std::int64_t find(std::int64_t n, Difference& difference) override {
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
                features_.each_weight(
                    tree.heads[i], i + 1, tree.labels[i],
                    [&](std::int64_t weight, double value) { difference.add(weight, sign * value); });
            };
            add(right, 1);
            add(predicted, -1);
        }
        return n_wrong;
    }
    void read_changes(const Difference&) override {}

  private:
    // The best tree that agrees with what is known.
    ScoredTree right_tree(std::int64_t first, const ScoredTree& predicted) {
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

    const ArcLayout& layout_;
    const Treebank& treebank_;
    const KnownTrees& trees_;
    const double* w_;
    const bool one_root_;
    SentenceFeatures features_;
    Buffer<double> weights_, scores_;
};

class TreeLoss final : public DataLoss {
  public:
    // Throws std::invalid_argument where things do not fit together, and where no tree agrees with what is
    // known of a sentence.
    TreeLoss(std::shared_ptr<const ArcLayout> layout, std::shared_ptr<const Treebank> treebank,
             KnownTrees trees, bool one_root, int threads)
        : DataLoss(layout->n_weights(), treebank->n_sentences(), threads),
          layout_(std::move(layout)),
          treebank_(std::move(treebank)),
          trees_(checked(std::move(trees), *layout_, *treebank_)),
          sequences_(*layout_, *treebank_, trees_, one_root) {}

    double evaluate(const double* w, double* gradient) override {
        return summed_.evaluate(sequences_, w, nullptr, gradient, n_threads);
    }
    void hessian_vector(const double* w, const double* v, double* out) override {
        summed_.evaluate(sequences_, w, v, out, n_threads);
    }
    const SequenceSource& sequences() override { return sequences_; }
    std::unique_ptr<Mistakes> mistakes(const double* w) override {
        return std::make_unique<TreeMistakes>(sequences_, w);
    }

  private:
    std::shared_ptr<const ArcLayout> layout_;
    std::shared_ptr<const Treebank> treebank_;
    KnownTrees trees_;
    TreeSequences sequences_;
    SummedLoss<TreeSequences, TreeSequence> summed_;
};

}  // namespace

std::unique_ptr<DataLoss> tree_loss(std::shared_ptr<const ArcLayout> layout,
                                    std::shared_ptr<const Treebank> treebank, KnownTrees trees, bool one_root,
                                    int n_threads) {
    return std::make_unique<TreeLoss>(std::move(layout), std::move(treebank), std::move(trees), one_root,
                                      n_threads);
}

}  // namespace crfkit
