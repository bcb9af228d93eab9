#include "trees/eisner_siblings.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/compensated_sum.hpp"
#include "base/subnormals.hpp"
#include "trees/sum_range.hpp"

namespace crfkit {

using Chart = SiblingChart;

// Places are the words and, where several words may hang on it, the root before them; the one dependent of
// the root is chosen at the end.
void EisnerSiblings::lay_out(const Scores& scores, std::int64_t n_arrays, double around) {
    n_words_ = scores.n_words;
    first_ = scores.one_root ? 1 : 0;
    const std::int64_t n = n_words_ + 1 - first_;
    const bool same = n == chart_.n && around == around_ && n_arrays <= n_arrays_;
    if (same) return;  // what lies behind the rows is as it was
    chart_.n = n;
    n_arrays_ = n_arrays;
    around_ = around;
    numbers_.assign(n_arrays * n * chart_.stride(), around);
    row_ptr_.resize(static_cast<std::size_t>(n * n));
    std::int64_t size = 0;
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t k = i + 1; k < n; ++k) {
            row_ptr_[i * n + k] = size;
            size += Chart::padded(n) - (k + 1 < n ? Chart::begin(k) : Chart::padded(n));
        }
    siblings_.assign(2 * size, around);
    chart_.numbers = numbers_.data();
    chart_.row_ptr = row_ptr_.data();
    chart_.right = siblings_.data();
    chart_.left = siblings_.data() + size;
}

// The best sum of an arc into m and its siblings, over all heads and siblings.
void EisnerSiblings::find_best_parts(const Scores& scores) {
    const std::int64_t side = n_words_ + 1;
    const auto raise = sibling_kernels().raise;
    shifts_.assign(static_cast<std::size_t>(side), kNever);
    for (std::int64_t h = 0; h < side; ++h) {
        highest_.assign(static_cast<std::size_t>(side), kNever);
        const double* const of_head = scores.siblings + h * side * side;
        raise(highest_.data() + 1, of_head + h * side + 1, std::max<std::int64_t>(h - 1, 0));
        raise(highest_.data() + h + 1, of_head + h * side + h + 1, side - h - 1);
        for (std::int64_t s = 1; s < h; ++s) raise(highest_.data() + 1, of_head + s * side + 1, s - 1);
        for (std::int64_t s = h + 1; s < side && (h > 0 || first_ == 0); ++s)
            raise(highest_.data() + s + 1, of_head + s * side + s + 1, side - s - 1);
        for (std::int64_t m = 1; m < side; ++m)
            if (m != h) shifts_[m] = std::max(shifts_[m], scores.arcs[h * side + m] + highest_[m]);
    }
}

// The same for dependents without siblings: a first guess, at a fraction of the price.
void EisnerSiblings::find_best_first(const Scores& scores) {
    const std::int64_t side = n_words_ + 1;
    shifts_.assign(static_cast<std::size_t>(side), kNever);
    for (std::int64_t h = 0; h < side; ++h) {
        const double *const arcs = scores.arcs + h * side, *const siblings =
                                                               scores.siblings + (h * side + h) * side;
        for (std::int64_t m = 1; m < side; ++m)
            if (m != h) shifts_[m] = std::max(shifts_[m], arcs[m] + siblings[m]);
    }
}

// Every tree has one arc and one sibling for each word: subtracting a number for each word changes no
// probability. `total` is what all trees lose. False where a word has no such number.
bool EisnerSiblings::shift(const Scores& scores, double* total) {
    const std::int64_t n = chart_.n, side = n_words_ + 1, wide = chart_.stride();
    Total sum;
    for (std::int64_t m = 1; m < side; ++m) {
        if (!(std::abs(shifts_[m]) < std::numeric_limits<double>::infinity())) return false;
        sum.add(shifts_[m]);
    }
    *total = sum.value();
    bases_.resize(static_cast<std::size_t>(side * side + Chart::kPad));
    for (std::int64_t h = 0; h < side; ++h)
        for (std::int64_t m = 1; m < side; ++m)
            bases_[h * side + m] = m == h ? kNever : scores.arcs[h * side + m] - shifts_[m];
    transposed_.assign(static_cast<std::size_t>(n * wide), 0.0);
    for (std::int64_t i = 1 - first_; i < n; ++i)
        for (std::int64_t h = i + 1; h < n; ++h)
            transposed_[i * wide + h] = bases_[(h + first_) * side + i + first_];
    return true;
}

// Numbers of siblings into the chart: by `all`, and of first ones to the left, row by row, by `row`. The
// highest sum.
template <class Row>
double EisnerSiblings::place(const Scores& scores, PlaceKernel all, const Row& row) {
    const std::int64_t n = chart_.n, side = n_words_ + 1, least = 1 - first_;
    const auto bases = [&](std::int64_t h) { return bases_.data() + (h + first_) * side + first_; };
    const SiblingScores given{scores.siblings, side, first_, least, bases(0), transposed_.data()};
    const double highest = all(chart_, given);
    row_.resize(static_cast<std::size_t>(n));
    for (std::int64_t k = least + 1; k < n; ++k) {
        row(given.row(k, k) + least, bases(k) + least, k - least, row_.data() + least);
        for (std::int64_t i = least; i < k; ++i) chart_.row(Chart::kFirstLeft, i)[k] = row_[i];
    }
    root_.resize(static_cast<std::size_t>(n));
    if (first_ == 1) row(scores.siblings + 1, bases_.data() + 1, n, root_.data());
    return highest;
}

// Z from the widest spans: Σ_r C←(0, r) exp(score of r as the root's dependent) C→(r, n − 1), or C→ of all.
double EisnerSiblings::close_sums() const {
    const std::int64_t n = chart_.n;
    if (first_ == 0) return chart_.row(Chart::kRight, 0)[n - 1];
    double sum = 0;
    for (std::int64_t r = 0; r < n; ++r)
        sum += chart_.row(Chart::kLeft, 0)[r] * root_[r] * chart_.row(Chart::kRight, r)[n - 1];
    return sum;
}

// Outside sums of the spans that the goal is made of, and 0 for all others.
void EisnerSiblings::set_goal() {
    const std::int64_t n = chart_.n;
    double* const out = chart_.row(Chart::kOutArcRight, 0);
    std::fill(out, out + (Chart::kArrays - Chart::kOutArcRight) * n * chart_.stride(), 0.0);
    if (first_ == 0) chart_.row(Chart::kOutRight, 0)[n - 1] = 1;
    for (std::int64_t r = 0; r < n && first_ == 1; ++r) {
        chart_.row(Chart::kOutLeft, 0)[r] += root_[r] * chart_.row(Chart::kRight, r)[n - 1];
        chart_.row(Chart::kOutRight, r)[n - 1] += root_[r] * chart_.row(Chart::kLeft, 0)[r];
    }
    chart_.scale = 1 / partition_;
    if (first_ == 1)  // the root's arcs: probabilities
        for (std::int64_t r = 0; r < n; ++r)
            root_[r] *= chart_.row(Chart::kLeft, 0)[r] * chart_.row(Chart::kRight, r)[n - 1] * chart_.scale;
}

// P(arc) = oI I / Z.
void EisnerSiblings::write_arcs(double* arcs) const {
    const std::int64_t n = chart_.n, side = n_words_ + 1;
    std::fill(arcs, arcs + side * side, 0.0);
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = i + 1; j < n; ++j) {
            arcs[(i + first_) * side + j + first_] =
                chart_.row(Chart::kArcRight, i)[j] * chart_.row(Chart::kOutArcRight, i)[j] * chart_.scale;
            arcs[(j + first_) * side + i + first_] =
                chart_.row(Chart::kArcLeft, i)[j] * chart_.row(Chart::kOutArcLeft, i)[j] * chart_.scale;
        }
    if (first_ == 1) std::copy_n(root_.data(), n, arcs + 1);
}

// The weights have become probabilities. The root that has one dependent is no place of the chart.
void EisnerSiblings::write_siblings(double* siblings, bool streamed) {
    const std::int64_t n = chart_.n, side = n_words_ + 1;
    planes_.resize(Chart::planes_size(n, side));
    sibling_kernels().write(chart_, first_, streamed, planes_.data(), siblings);
    if (first_ == 0) return;
    std::fill(siblings, siblings + side * side, 0.0);
    std::copy_n(root_.data(), n, siblings + 1);
}

// Z, of scores from which `shifts_` are subtracted, or 0 where it may have lost digits. No sum exceeds
// (6.75 exp(highest))^n (sum_range.hpp).
double EisnerSiblings::sum_shifted(const Scores& scores, double* total) {
    if (!shift(scores, total)) return 0;
    const double highest = std::max(place(scores, sibling_kernels().weigh, sibling_kernels().weigh_row), 0.0);
    if (!stays_finite(n_words_, highest)) return 0;
    sibling_kernels().inside(chart_);
    const double partition = close_sums();
    return keeps_all_digits(partition, n_words_, highest) ? partition : 0;
}

// The vectors of the kernels reach beyond the rows of very short sentences: these get some more numbers.
EisnerSiblings::Scores EisnerSiblings::pad_short(const Scores& scores) {
    const std::int64_t side = scores.n_words + 1;
    if (side >= SiblingScores::kLeastSide) return scores;
    given_.assign(static_cast<std::size_t>(side * side * side + 2 * Chart::kPad), 0.0);
    std::copy_n(scores.siblings, side * side * side, given_.data());
    return {scores.arcs, given_.data(), scores.n_words, scores.one_root};
}

bool EisnerSiblings::sum(const Scores& given, double* log_z, ProjectiveParts<double> marginals) {
    if (given.n_words < 1 || given.n_words > kMostWords) return false;
    const FlushSubnormals flush;
    const Scores scores = pad_short(given);
    lay_out(scores, marginals.arcs ? Chart::kArrays : Chart::kInside, 0.0);
    double total = 0;
    find_best_first(scores);
    partition_ = sum_shifted(scores, &total);
    if (partition_ == 0) {
        find_best_parts(scores);
        partition_ = sum_shifted(scores, &total);
    }
    if (partition_ == 0) return false;
    *log_z = total + std::log(partition_);
    if (!marginals.arcs) return true;
    set_goal();
    sibling_kernels().outside(chart_);
    write_arcs(marginals.arcs);
    write_siblings(marginals.siblings, marginals.streamed);
    return true;
}

double EisnerSiblings::best(const Scores& given, std::int32_t* heads) {
    if (given.n_words == 0) return 0;
    const Scores scores = pad_short(given);
    lay_out(scores, Chart::kInside, kNever);
    const std::int64_t n = chart_.n, side = n_words_ + 1;
    bases_.resize(static_cast<std::size_t>(side * side + Chart::kPad));  // not read
    place(scores, sibling_kernels().place,
          [](const double* x, const double*, std::int64_t size, double* out) { std::copy_n(x, size, out); });
    const double* const arcs = scores.arcs + first_ * (side + 1);
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = i + 1; j < n; ++j) {
            chart_.row(Chart::kWeightRight, i)[j] = arcs[i * side + j];
            chart_.row(Chart::kWeightLeft, i)[j] = i + first_ == 0 ? kNever : arcs[j * side + i];
        }
    sibling_kernels().viterbi(chart_);
    double best = kNever;
    open_.clear();
    if (first_ == 0) {
        best = chart_.row(Chart::kRight, 0)[n - 1];
        open_.push_back({Chart::kRight, 0, n - 1});
    } else {
        std::int64_t root = 0;
        for (std::int64_t r = 0; r < n; ++r) {
            const double below = root_[r] + chart_.row(Chart::kLeft, 0)[r];
            const double score = scores.arcs[r + 1] + below + chart_.row(Chart::kRight, r)[n - 1];
            if (score > best) {
                best = score;
                root = r;
            }
        }
        heads[root] = 0;
        open_.push_back({Chart::kLeft, 0, root});
        open_.push_back({Chart::kRight, root, n - 1});
    }
    if (best > kNever) follow(heads);
    return best;
}

// The splits of the best spans are found again, where the same sum gives the same bits: the first ones.
void EisnerSiblings::follow(std::int32_t* heads) {
    const auto at = [&](Chart::Array which, std::int64_t i, std::int64_t j) {
        return chart_.row(which, i)[j];
    };
    while (!open_.empty()) {
        const auto [kind, i, j] = open_.back();
        open_.pop_back();
        if (i == j) continue;
        std::int64_t k = i;
        if (kind == Chart::kRight) {
            for (k = i + 1; at(Chart::kArcRight, i, k) + at(Chart::kRight, k, j) < at(Chart::kRight, i, j);)
                ++k;
            open_.push_back({Chart::kArcRight, i, k});
            open_.push_back({Chart::kRight, k, j});
        } else if (kind == Chart::kLeft) {
            while (at(Chart::kLeft, i, k) + at(Chart::kArcLeft, k, j) < at(Chart::kLeft, i, j)) ++k;
            open_.push_back({Chart::kLeft, i, k});
            open_.push_back({Chart::kArcLeft, k, j});
        } else if (kind == Chart::kSpan) {
            while (at(Chart::kRight, i, k) + at(Chart::kLeft, k + 1, j) < at(Chart::kSpan, i, j)) ++k;
            open_.push_back({Chart::kRight, i, k});
            open_.push_back({Chart::kLeft, k + 1, j});
        } else if (kind == Chart::kArcRight) {
            heads[j + first_ - 1] = static_cast<std::int32_t>(i + first_);
            double highest = at(Chart::kFirstRight, i, j) + at(Chart::kLeft, i + 1, j);
            for (std::int64_t s = i + 1; s < j; ++s)
                if (const double score = chart_.right_row(i, s)[j - Chart::begin(s)] +
                                         at(Chart::kArcRight, i, s) + at(Chart::kSpan, s, j);
                    score > highest) {
                    highest = score;
                    k = s;
                }
            if (k == i) {
                open_.push_back({Chart::kLeft, i + 1, j});
            } else {
                open_.push_back({Chart::kArcRight, i, k});
                open_.push_back({Chart::kSpan, k, j});
            }
        } else {
            heads[i + first_ - 1] = static_cast<std::int32_t>(j + first_);
            double highest = at(Chart::kFirstLeft, i, j) + at(Chart::kRight, i, j - 1);
            k = j;
            for (std::int64_t s = j - 1; s > i; --s)
                if (const double score = chart_.left_row(i, s)[j - Chart::begin(s)] + at(Chart::kSpan, i, s) +
                                         at(Chart::kArcLeft, s, j);
                    score > highest) {
                    highest = score;
                    k = s;
                }
            if (k == j) {
                open_.push_back({Chart::kRight, i, j - 1});
            } else {
                open_.push_back({Chart::kSpan, i, k});
                open_.push_back({Chart::kArcLeft, k, j});
            }
        }
    }
}

}  // namespace crfkit
