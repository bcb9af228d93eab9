#include "trees/arc_scorer.hpp"

#include <algorithm>

#include "base/interruption.hpp"
#include "kernels/tree_rows.hpp"

namespace crfkit {

void ArcScorer::load(const Treebank& treebank, std::int64_t n) {
    features_.load(treebank, n);
    const std::int64_t R = weights_.layout().n_labels(), n_rows = 2 * (n_words() + 1);
    by_dependent_.assign(n_rows * R, 0.0);
    by_head_.assign(n_rows * R, 0.0);
    row_.resize(R);
    if (!vectors_.is_empty()) {
        vectors_.load(treebank, n);
        vectors_.multiply_all(weights_.of_vectors());
    }
    if (weights_.layout().n_label_features() == 0) return;
    for (std::int64_t i = 0; i <= n_words(); ++i)
        for (const Side side : {Side::left, Side::right}) {
            const std::int64_t row = 2 * i + (side == Side::right);
            if (i > 0) {
                features_.label_of_dependent(i, side, keys_);
                add_labels(by_dependent_.data() + row * R);
            }
            features_.label_of_head(i, side, keys_);
            add_labels(by_head_.data() + row * R);
        }
}

const double* ArcScorer::labels(std::int64_t head, std::int64_t dependent) {
    const std::int64_t R = weights_.layout().n_labels(), right = side_of(head, dependent) == Side::right;
    weights_.layout().is_coarse() ? features_.coarse_arc(head, dependent, keys_)
                                  : features_.arc(head, dependent, keys_);
    const double sum = weights_.sum(keys_);
    const double *a = by_dependent_.data() + (2 * dependent + right) * R,
                 *b = by_head_.data() + (2 * head + right) * R;
    for (std::int64_t r = 0; r < R; ++r) row_[r] = sum + a[r] + b[r];
    if (weights_.layout().n_label_features() > 0) {
        features_.label_of_arc(head, dependent, keys_);
        add_labels(row_.data());
    }
    if (!vectors_.is_empty()) vectors_.add(head, dependent, row_.data());
    return row_.data();
}

void ArcScorer::fill(double* scores) {
    const std::int64_t R = weights_.layout().n_labels(), side = n_words() + 1;
    std::fill_n(scores, side * side * R, 0.0);
    for (std::int64_t h = 0; h < side; ++h) {
        check_interruption();
        for (std::int64_t m = 1; m < side; ++m)
            if (h != m) std::copy_n(labels(h, m), R, scores + (h * side + m) * R);
    }
}

void ArcScorer::fill(const TreeParts& parts, double* scores) {
    check_interruption();
    const std::int64_t R = weights_.layout().n_labels();
    for (const auto [h, m] : parts.arcs()) scores = std::copy_n(labels(h, m), R, scores);
    for (const SecondOrderPart& part : parts.second_order()) {
        add_keys(features_, part, keys_);
        *scores++ = weights_.sum(keys_);
    }
}

void ArcScorer::sum_labels(double* tops, double* sums) {
    const std::int64_t R = weights_.layout().n_labels(), side = n_words() + 1;
    std::fill_n(tops, side * side, 0.0);
    std::fill_n(sums, side * side, 0.0);
    shares_.resize(R);
    for (std::int64_t h = 0; h < side; ++h) {
        check_interruption();
        for (std::int64_t m = 1; m < side; ++m) {
            if (h == m) continue;
            const double* scores = labels(h, m);
            tops[h * side + m] = scores[tree_kernels().largest(scores, R)];
            label_sums_.sum(1, R, scores, sums + h * side + m, shares_.data());
        }
    }
}

std::int32_t ArcScorer::best_label(std::int64_t head, std::int64_t dependent) {
    const double* scores = labels(head, dependent);
    return static_cast<std::int32_t>(std::max_element(scores, scores + weights_.layout().n_labels()) -
                                     scores);
}

}  // namespace crfkit
