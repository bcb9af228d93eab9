#include "trees/objective.hpp"

#include <algorithm>
#include <utility>

#include "base/compensated_sum.hpp"
#include "base/threads.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kAtOnce = 64;  // sentences that are differentiated before their gradients are added

// One sentence under way.
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
        step_kernels().read(sequence.runs().data(), static_cast<std::int64_t>(sequence.runs().size()), from,
                            1.0, to.data());
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

TreeObjective::TreeObjective(std::shared_ptr<const ArcLayout> layout,
                             std::shared_ptr<const Treebank> treebank, KnownTrees trees,
                             std::vector<double> l2, bool one_root, int threads)
    : n_threads(threads),
      layout_(std::move(layout)),
      treebank_(std::move(treebank)),
      trees_(checked(std::move(trees), *layout_, *treebank_)),
      penalty_(std::move(l2), layout_->n_weights()),
      sequences_(*layout_, *treebank_, trees_, one_root) {}

// Gradients are added in the order of the sentences: the same bits for any number of threads.
double TreeObjective::evaluate(const double* w, const double* v, double* out) {
    const std::lock_guard one_at_a_time(mutex_);
    std::fill_n(out, n_weights(), 0.0);
    const std::int64_t n = treebank_->n_sentences();
    std::vector<std::unique_ptr<Slot>> slots;
    for (std::int64_t i = 0; i < std::min(n, kAtOnce); ++i)
        slots.push_back(std::make_unique<Slot>(sequences_));
    Total loss;
    for (std::int64_t first = 0; first < n; first += kAtOnce) {
        const std::int64_t size = std::min(kAtOnce, n - first);
        parallel_for(size, n_threads, [&](std::int64_t i, int) { slots[i]->differentiate(first + i, w, v); });
        for (std::int64_t i = 0; i < size; ++i) {
            const auto& runs = slots[i]->sequence.runs();
            step_kernels().add(runs.data(), static_cast<std::int64_t>(runs.size()), slots[i]->gradient.data(),
                               1.0, out);
            loss.add(slots[i]->loss);
        }
    }
    return loss.value();
}

double TreeObjective::value_and_gradient(const double* w, double* gradient) {
    const double loss = evaluate(w, nullptr, gradient);
    return loss + penalty_.add_gradient(w, gradient, n_threads);
}

void TreeObjective::hessian_vector(const double* w, const double* v, double* out) {
    evaluate(w, v, out);
    penalty_.add_product(v, out, n_threads);
}

}  // namespace crfkit
