#include "trees/sequence_loss.hpp"

#include <cmath>

#include "kernels/tree_rows.hpp"
#include "trees/sums.hpp"

namespace crfkit {

void TreeSequences::each_slot_range(const std::function<void(SlotRange)>& function) const {
    for (std::int64_t d = 0; d < layout.arcs.size(); ++d) function({d, d + 1});
    for (std::int64_t f = 0; f < layout.labels.size(); ++f)
        if (layout.pair_ptr[f] < layout.pair_ptr[f + 1])
            function({layout.first_weight(f), layout.first_weight(f + 1)});
}

std::unique_ptr<SequenceLoss> TreeSequences::open() const { return std::make_unique<TreeSequence>(*this); }

void TreeSequence::load(std::int64_t n) {
    n_ = n;
    first_ = source_.treebank.sentence_ptr[n];
    features_.load(source_.treebank, n);
    clear();
    for (const std::int32_t f : features_.arc_ids()) touch(f, f + 1);
    for (const std::int32_t f : features_.label_ids())
        touch(source_.layout.first_weight(f), source_.layout.first_weight(f + 1));
}

// loss = weight · (log Z − log Z_gold), and its derivative by the score of each labelled arc,
//   residual(h, m, r) = weight · (P(h → m) p_r − P_gold(h → m, r)),   p_r = exp(score_r − top) / Σ_r exp(…)
// The residuals hold exp(score − top) first; factors_ = weight / Σ_r of these.
double TreeSequence::differentiate(const double* weights, double* residuals) {
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

bool TreeSequence::is_known() const {
    for (std::int64_t i = 0; i < features_.n_words(); ++i)
        if (source_.trees.heads[first_ + i] < 0 || source_.trees.labels[first_ + i] < 0) return false;
    return true;
}

// One tree agrees: its score.
double TreeSequence::subtract_known(double* residuals, double weight) const {
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

// The scores, and −inf where an arc or label does not agree with what is known.
const std::vector<double>& TreeSequence::gold_scores() {
    allowed_.assign(scores_.begin(), scores_.end());
    source_.trees.forbid(first_, features_.n_words(), source_.layout.n_labels(), allowed_.data());
    return allowed_;
}

// The sum over all trees that agree.
double TreeSequence::subtract_partly_known(double* residuals, double weight) {
    const TreeView tree{features_.n_words(), source_.layout.n_labels(), gold_scores().data(),
                        source_.one_root};
    changes_.resize(allowed_.size());
    const double log_z = tree_marginals(tree, changes_.data());
    for (std::size_t i = 0; i < changes_.size(); ++i) residuals[i] -= weight * changes_[i];
    return log_z;
}

void TreeSequence::hessian_vector(const double* weights, const double* direction, double* residuals) {
    const double weight = source_.trees.weights[n_];
    const std::int32_t R = source_.layout.n_labels();
    scores_.resize(features_.n_scores());
    moves_.resize(features_.n_scores());
    features_.score(weights, scores_.data());
    features_.score(direction, moves_.data());
    tree_hessian_vector({features_.n_words(), R, scores_.data(), source_.one_root}, moves_.data(), residuals);
    if (is_known()) {
        for (std::int64_t i = 0; i < features_.n_scores(); ++i) residuals[i] *= weight;
        return;
    }
    const TreeView tree{features_.n_words(), R, gold_scores().data(), source_.one_root};
    changes_.resize(allowed_.size());
    tree_hessian_vector(tree, moves_.data(), changes_.data());
    for (std::size_t i = 0; i < changes_.size(); ++i) residuals[i] = weight * (residuals[i] - changes_[i]);
}

}  // namespace crfkit
