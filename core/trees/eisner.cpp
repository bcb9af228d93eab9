#include "trees/eisner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/compensated_sum.hpp"
#include "base/subnormals.hpp"
#include "kernels/tree_rows.hpp"
#include "trees/sum_range.hpp"

namespace crfkit {

using Chart = EisnerChart;

// Places are the words and, where several words may hang on it, the root before them; the one dependent of
// the root is chosen at the end.
void Eisner::lay_out(std::int64_t n_words, bool one_root, std::int64_t n_arrays, double around) {
    n_words_ = n_words;
    first_ = one_root ? 1 : 0;
    const std::int64_t n = n_words + 1 - first_, size = n_arrays * Chart::size(n);
    const bool same = n == chart_.n && around == around_ && n_arrays <= n_arrays_;
    chart_.n = n;
    if (same) return;  // what lies around the rows is as it was
    numbers_.assign(size, around);
    chart_.numbers = numbers_.data();
    n_arrays_ = n_arrays;
    around_ = around;
}

// Numbers of arcs [n + 1, n + 1] into the arrays of weights.
void Eisner::place(const double* of_arcs) {
    const std::int64_t n = chart_.n, side = n_words_ + 1;
    double *const right = chart_.array(Chart::kWeightRight), *const left = chart_.array(Chart::kWeightLeft);
    for (std::int64_t w = 1; w < n; ++w) {
        double *const to_right = right + Chart::row(n, w), *const to_left = left + Chart::row(n, w);
        const double *above = of_arcs + first_ * side + first_ + w,
                     *below = of_arcs + (first_ + w) * side + first_;
        for (std::int64_t i = 0; i < n - w; ++i) {
            to_right[i] = above[i * (side + 1)];
            to_left[i] = below[i * (side + 1)];
        }
        if (first_ == 0) to_left[0] = around_;  // the root has no head
    }
    root_.resize(static_cast<std::size_t>(n));
    if (first_ == 1) std::copy_n(of_arcs + 1, n, root_.data());
}

// Z from the widest spans: Σ_r C←(0, r) exp(score(root → r)) C→(r, n − 1 − r), or C→ of all places.
double Eisner::close_sums() {
    const std::int64_t n = chart_.n;
    const double *const right = chart_.array(Chart::kRight), *const left = chart_.array(Chart::kLeft);
    if (first_ == 0) return right[Chart::row(n, n - 1)];
    double sum = 0;
    for (std::int64_t r = 0; r < n; ++r)
        sum += left[Chart::row(n, r)] * root_[r] * right[Chart::row(n, n - 1 - r) + r];
    return sum;
}

// Outside sums of the spans that the goal is made of.
void Eisner::set_goal() {
    const std::int64_t n = chart_.n;
    const double *const right = chart_.array(Chart::kRight), *const left = chart_.array(Chart::kLeft);
    goal_left_.assign(static_cast<std::size_t>(n), 0.0);
    goal_right_.assign(static_cast<std::size_t>(n), 0.0);
    if (first_ == 0) {
        goal_right_[n - 1] = 1;
    } else {
        for (std::int64_t r = 0; r < n; ++r) {
            goal_left_[r] = root_[r] * right[Chart::row(n, n - 1 - r) + r];
            goal_right_[n - 1 - r] = root_[r] * left[Chart::row(n, r)];
        }
    }
    chart_.goal_left = goal_left_.data();
    chart_.goal_right = goal_right_.data();
}

// P(arc) = oI I / Z.
void Eisner::write_marginals(double* marginals) const {
    const std::int64_t n = chart_.n, side = n_words_ + 1;
    const double *const right = chart_.array(Chart::kArcRight), *const left = chart_.array(Chart::kArcLeft),
                        *const out_right = chart_.array(Chart::kOutArcRight),
                        *const out_left = chart_.array(Chart::kOutArcLeft);
    const double scale = 1 / partition_;
    std::fill_n(marginals, side, 0.0);
    for (std::int64_t place = 0; place < side; ++place)
        marginals[place * side] = marginals[place * (side + 1)] = 0;
    for (std::int64_t w = 1; w < n; ++w) {
        const std::int64_t row = Chart::row(n, w);
        double *above = marginals + first_ * side + first_ + w,
               *below = marginals + (first_ + w) * side + first_;
        for (std::int64_t i = 0; i < n - w; ++i) {
            above[i * (side + 1)] = right[row + i] * out_right[row + i] * scale;
            below[i * (side + 1)] = left[row + i] * out_left[row + i] * scale;
        }
    }
    if (first_ == 0) return;
    const double* const inside_left = chart_.array(Chart::kLeft);
    for (std::int64_t r = 0; r < n; ++r)
        marginals[r + 1] = inside_left[Chart::row(n, r)] * goal_left_[r] * scale;
}

bool Eisner::sum(const double* arcs, std::int64_t n_words, bool one_root, double* log_z, double* marginals) {
    if (n_words < 1 || n_words > kMostWords) return false;
    const FlushSubnormals flush;
    const std::int64_t side = n_words + 1;
    lay_out(n_words, one_root, marginals ? Chart::kArrays : Chart::kInside, 0.0);
    // Subtracting the best score of each word changes no probability: every tree has one arc into it.
    shifts_.assign(static_cast<std::size_t>(side), kNever);
    for (std::int64_t h = 0; h < side; ++h)
        for (std::int64_t m = 1; m < side; ++m)
            if (h != m) shifts_[m] = std::max(shifts_[m], arcs[h * side + m]);
    Total total;
    for (std::int64_t m = 1; m < side; ++m) {
        if (!(std::abs(shifts_[m]) < std::numeric_limits<double>::infinity())) return false;
        total.add(shifts_[m]);
    }
    weights_.resize(static_cast<std::size_t>(side * side));
    for (std::int64_t h = 0; h < side; ++h)
        tree_kernels().weigh(arcs + h * side + 1, shifts_.data() + 1, n_words,
                             weights_.data() + h * side + 1);
    place(weights_.data());
    eisner_kernels().inside(chart_);
    partition_ = close_sums();
    if (!keeps_all_digits(partition_, n_words)) return false;
    total.add(std::log(partition_));
    *log_z = total.value();
    if (!marginals) return true;
    set_goal();
    eisner_kernels().outside(chart_);
    write_marginals(marginals);
    return true;
}

double Eisner::best(const double* arcs, std::int64_t n_words, bool one_root, std::int32_t* heads) {
    if (n_words == 0) return 0;
    lay_out(n_words, one_root, Chart::kInside, kNever);
    place(arcs);
    eisner_kernels().viterbi(chart_);
    const std::int64_t n = chart_.n;
    const double *const right = chart_.array(Chart::kRight), *const left = chart_.array(Chart::kLeft);
    double best = kNever;
    open_.clear();
    if (first_ == 0) {
        best = right[Chart::row(n, n - 1)];
        open_.push_back({Chart::kRight, 0, n - 1});
    } else {
        std::int64_t root = 0;
        for (std::int64_t r = 0; r < n; ++r) {
            const double score = root_[r] + left[Chart::row(n, r)] + right[Chart::row(n, n - 1 - r) + r];
            if (score > best) {
                best = score;
                root = r;
            }
        }
        heads[root] = 0;
        open_.push_back({Chart::kLeft, 0, root});
        open_.push_back({Chart::kRight, root, n - 1 - root});
    }
    if (best > kNever) follow(heads);
    return best;
}

// The splits of the best spans are found again, where the same sum gives the same bits: the first ones.
void Eisner::follow(std::int32_t* heads) {
    const std::int64_t n = chart_.n;
    const double *const arc_right = chart_.array(Chart::kArcRight),
                        *const arc_left = chart_.array(Chart::kArcLeft),
                        *const right = chart_.array(Chart::kRight), *const left = chart_.array(Chart::kLeft);
    const auto at = [n](std::int64_t i, std::int64_t w) { return Chart::row(n, w) + i; };
    while (!open_.empty()) {
        const auto [kind, i, w] = open_.back();
        open_.pop_back();
        if (w == 0) continue;
        std::int64_t k = 0;
        if (kind == Chart::kRight) {
            for (k = 1; arc_right[at(i, k)] + right[at(i + k, w - k)] < right[at(i, w)];) ++k;
            open_.push_back({Chart::kArcRight, i, k});
            open_.push_back({Chart::kRight, i + k, w - k});
        } else if (kind == Chart::kLeft) {
            while (left[at(i, k)] + arc_left[at(i + k, w - k)] < left[at(i, w)]) ++k;
            open_.push_back({Chart::kLeft, i, k});
            open_.push_back({Chart::kArcLeft, i + k, w - k});
        } else {
            const std::int64_t head = kind == Chart::kArcRight ? i : i + w, dependent = 2 * i + w - head;
            heads[dependent + first_ - 1] = static_cast<std::int32_t>(head + first_);
            double highest = kNever;
            for (std::int64_t split = 0; split < w; ++split) {
                const double score = right[at(i, split)] + left[at(i + split + 1, w - 1 - split)];
                if (score > highest) {
                    highest = score;
                    k = split;
                }
            }
            open_.push_back({Chart::kRight, i, k});
            open_.push_back({Chart::kLeft, i + k + 1, w - 1 - k});
        }
    }
}

}  // namespace crfkit
