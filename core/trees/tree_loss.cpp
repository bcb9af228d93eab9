#include "trees/tree_loss.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/compensated_sum.hpp"
#include "base/threads.hpp"
#include "trees/graph.hpp"
#include "trees/k_best.hpp"
#include "trees/sequence_loss.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kAtOnce = 64;  // sentences that are differentiated before their gradients are added

// The workspace of one sentence.
struct Slot {
    explicit Slot(const TreeSequences& source) : sequence(source) {}

    void differentiate(std::int64_t n, const double* w, const double* v) {
        sequence.load(n);
        read(w, weights);
        residuals.resize(sequence.n_residuals());
        gradient.resize(sequence.n_weights());
        if (v) {
            read(v, direction);
            sequence.hessian_vector(weights.data(), direction.data(), residuals.data());
        } else {
            loss = sequence.differentiate(weights.data(), residuals.data());
        }
        sequence.gradient(residuals.data(), gradient.data());
    }
    void read(const double* from, Buffer<double>& to) const {
        to.resize(sequence.n_weights());
        step_kernels().read(sequence.ranges().data(), static_cast<std::int64_t>(sequence.ranges().size()),
                            from, 1.0, to.data());
    }

    TreeSequence sequence;
    Buffer<double> weights, direction, gradient, residuals;
    double loss = 0;
};

KnownTrees checked(KnownTrees trees, const ArcLayout& layout, const Treebank& treebank) {
    trees.check(treebank, layout.n_labels());
    return trees;
}

// Where a parser is wrong: the best tree of a sentence at the current weights against the right one.
class TreeMistakes final : public Mistakes {
  public:
    TreeMistakes(const ArcLayout& layout, const Treebank& treebank, const KnownTrees& trees, const double* w,
                 bool one_root)
        : layout_(layout),
          treebank_(treebank),
          trees_(trees),
          w_(w),
          one_root_(one_root),
          store_(treebank.n_sentences()),
          features_(layout, &store_) {}

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
                features_.each_weight(tree.heads[i], i + 1, tree.labels[i],
                                      [&](std::int64_t weight) { difference.add(weight, sign); });
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
    FeatureStore store_;
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

    double evaluate(const double* w, double* gradient) override { return sum(w, nullptr, gradient); }
    void hessian_vector(const double* w, const double* v, double* out) override { sum(w, v, out); }
    const SequenceSource& sequences() override { return sequences_; }
    std::unique_ptr<Mistakes> mistakes(const double* w) override {
        return std::make_unique<TreeMistakes>(*layout_, *treebank_, trees_, w, sequences_.one_root);
    }

  private:
    // Gradients are added in the order of the sentences: the same bits for any number of threads.
    double sum(const double* w, const double* v, double* out) {
        std::fill_n(out, n_weights, 0.0);
        std::vector<std::unique_ptr<Slot>> slots;
        for (std::int64_t i = 0; i < std::min(n_sequences, kAtOnce); ++i)
            slots.push_back(std::make_unique<Slot>(sequences_));
        Total loss;
        for (std::int64_t first = 0; first < n_sequences; first += kAtOnce) {
            const std::int64_t size = std::min(kAtOnce, n_sequences - first);
            parallel_for(size, n_threads,
                         [&](std::int64_t i, int) { slots[i]->differentiate(first + i, w, v); });
            for (std::int64_t i = 0; i < size; ++i) {
                const auto& ranges = slots[i]->sequence.ranges();
                step_kernels().add(ranges.data(), static_cast<std::int64_t>(ranges.size()),
                                   slots[i]->gradient.data(), 1.0, out);
                loss.add(slots[i]->loss);
            }
        }
        return loss.value();
    }

    std::shared_ptr<const ArcLayout> layout_;
    std::shared_ptr<const Treebank> treebank_;
    KnownTrees trees_;
    TreeSequences sequences_;
};

}  // namespace

std::unique_ptr<DataLoss> tree_loss(std::shared_ptr<const ArcLayout> layout,
                                    std::shared_ptr<const Treebank> treebank, KnownTrees trees, bool one_root,
                                    int n_threads) {
    return std::make_unique<TreeLoss>(std::move(layout), std::move(treebank), std::move(trees), one_root,
                                      n_threads);
}

}  // namespace crfkit
