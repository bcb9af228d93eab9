#include "trees/tree_loss.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/compensated_sum.hpp"
#include "base/threads.hpp"
#include "trees/mistakes.hpp"

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

}  // namespace

TreeLoss::TreeLoss(std::shared_ptr<const ArcLayout> layout, std::shared_ptr<const Treebank> treebank,
                   KnownTrees trees, bool one_root, int threads)
    : DataLoss(layout->n_weights(), treebank->n_sentences(), threads),
      layout_(std::move(layout)),
      treebank_(std::move(treebank)),
      trees_(checked(std::move(trees), *layout_, *treebank_)),
      sequences_(*layout_, *treebank_, trees_, one_root) {}

std::unique_ptr<Mistakes> TreeLoss::mistakes(const double* w) {
    return std::make_unique<TreeMistakes>(*layout_, *treebank_, trees_, w, sequences_.one_root);
}

// Gradients are added in the order of the sentences: the same bits for any number of threads.
double TreeLoss::sum(const double* w, const double* v, double* out) {
    std::fill_n(out, n_weights, 0.0);
    std::vector<std::unique_ptr<Slot>> slots;
    for (std::int64_t i = 0; i < std::min(n_sequences, kAtOnce); ++i)
        slots.push_back(std::make_unique<Slot>(sequences_));
    Total loss;
    for (std::int64_t first = 0; first < n_sequences; first += kAtOnce) {
        const std::int64_t size = std::min(kAtOnce, n_sequences - first);
        parallel_for(size, n_threads, [&](std::int64_t i, int) { slots[i]->differentiate(first + i, w, v); });
        for (std::int64_t i = 0; i < size; ++i) {
            const auto& ranges = slots[i]->sequence.ranges();
            step_kernels().add(ranges.data(), static_cast<std::int64_t>(ranges.size()),
                               slots[i]->gradient.data(), 1.0, out);
            loss.add(slots[i]->loss);
        }
    }
    return loss.value();
}

}  // namespace crfkit
