// Elimination of words from the graph of all arcs, which answers every question about sums over trees.
//
// By the matrix–tree theorem (Tutte 1948; for dependency trees Koo et al. 2007) Z is the determinant of the
// Laplacian D − A, where D holds the sums of the columns of A and of the root's arcs. Elimination finds it
// without a subtraction.
//
// a_ij is the weight of the arc from head i to dependent j, rho_j the weight of the arc from the root. With
// word k taken out of the graph,
//   d_k = Σ_i a_ik (+ rho_k),   q_ik = a_ik / d_k,   q_0k = rho_k / d_k
//   a_ij += q_ik a_kj,          rho_j += q_0k a_kj                    (i, j among the words left, i ≠ j)
// and Z = Π_k d_k · rho of the last word left. rho_k belongs to d_k where several words may hang on the root,
// and not where exactly one does: that is the limit of small rho, divided by its scale (the Markov-chain tree
// theorem). This is the elimination of Grassmann, Taksar and Heyman (1985) for the stationary distribution of
// Markov chains: sums, products and quotients of numbers ≥ 0 only, so that no digits are lost whatever the
// spread of the weights, where a determinant of D − A loses them all.
//
// The gradient is made of the same operations. A walk that goes from each word to a head, i with probability
// q_ij from j, ends at the root. Let e_ij be the probability that it does so from i without passing j, and
// rho^j the rho of j when all other words are taken out. Then
//   ∂ log Z / ∂ a_ij = e_ij / rho^j,     ∂ log Z / ∂ rho_j = 1 / rho^j
//   e_lj = q_0l + Σ_i q_il e_ij,         e_jj = 0       (i among the words that were left when l went out)
// (differentiating the elimination backwards gives the same as a difference of large numbers). To have every
// j left last once, the words are halved: take out one half, go on with the other, and then with the halves
// swapped. With the sums for e this costs 1.3 n³ multiplications, an inverse n³.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <type_traits>
#include <vector>

#include "base/interruption.hpp"
#include "kernels/tree_rows.hpp"
#include "trees/numbers.hpp"

namespace crfkit {

// The rows of TreeKernels for all numbers. `add` and `combine` tell whether nothing faded that should be
// positive.
template <class Number>
struct TreeRows {
    static bool add(Number* rows, std::int64_t stride, std::int64_t n_rows, const Number* factors,
                    const Number* x, std::int64_t n, bool /*check*/) {
        bool kept = true;
        for (std::int64_t i = 0; i < n_rows; ++i, rows += stride) {
            if (is_zero(factors[i])) continue;
            for (std::int64_t j = 0; j < n; ++j) {
                if (is_zero(x[j])) continue;
                rows[j] = rows[j] + factors[i] * x[j];
                kept &= !is_faded(rows[j]);
            }
        }
        return kept;
    }
    static bool combine(const Number* rows, std::int64_t stride, std::int64_t n_rows, const Number* factors,
                        const Number& constant, std::int64_t n, Number* out, bool /*check*/) {
        bool kept = true;
        for (std::int64_t j = 0; j < n; ++j) {
            Number sum = constant;
            bool some = !is_zero(constant);
            for (std::int64_t i = 0; i < n_rows; ++i) {
                const Number& x = rows[i * stride + j];
                if (is_zero(factors[i]) || is_zero(x)) continue;
                sum = sum + factors[i] * x;
                some = true;
            }
            kept &= !(some && is_faded(sum));
            out[j] = sum;
        }
        return kept;
    }
};

template <>
struct TreeRows<double> {
    static bool add(double* rows, std::int64_t stride, std::int64_t n_rows, const double* factors,
                    const double* x, std::int64_t n, bool check) {
        const TreeKernels& kernels = tree_kernels();
        if (check) return !is_faded(kernels.add_checked(rows, stride, n_rows, factors, x, n));
        kernels.add(rows, stride, n_rows, factors, x, n);
        return true;
    }
    static bool combine(const double* rows, std::int64_t stride, std::int64_t n_rows, const double* factors,
                        double constant, std::int64_t n, double* out, bool check) {
        const TreeKernels& kernels = tree_kernels();
        if (check) return !is_faded(kernels.combine_checked(rows, stride, n_rows, factors, constant, n, out));
        kernels.combine(rows, stride, n_rows, factors, constant, n, out);
        return true;
    }
};

// The elimination on a graph of n strongly connected words (or a single one), of which at least one hangs on
// the root.
template <class Number>
class Elimination {
  public:
    // Sets the size; `weights` is then to be filled. With `one_root` exactly one word hangs on the root.
    void begin(std::int64_t n, bool one_root) {
        n_ = n;
        one_root_ = one_root;
        check_ = kept_ = true;
        weights_.assign(static_cast<std::size_t>((n + 1) * n), Number{});
        pivots_.resize(static_cast<std::size_t>(n));
    }

    // [n + 1, n] row 0: rho, row 1 + i: a_i·. The diagonal is ignored.
    Number* weights(std::int64_t row) { return weights_.data() + row * n_; }
    const Number* weights(std::int64_t row) const { return weights_.data() + row * n_; }

    // Where all arcs exist and none is too small for a double, none becomes so later: sums only grow.
    void skip_checks() { check_ = false; }

    // d_k of each word when the words go out from the last to the first; that of word 0 is its rho.
    const std::vector<Number>& pivots() const { return pivots_; }
    const Number& arrival(std::int64_t j) const { return arrivals_[j]; }              // rho^j
    const Number* escapes(std::int64_t i) const { return escapes_.data() + i * n_; }  // e_i·

    // Finds the pivots alone: Z is their product. False: a number left the range of doubles, and nothing is
    // found.
    bool find_pivots() {
        pivots_[0] = take_out_all_but_first().root()[0];
        return kept_ && is_finite(pivots_[0]);
    }

    // Finds pivots, arrivals and escapes.
    bool find_all() {
        arrivals_.resize(static_cast<std::size_t>(n_));
        escapes_.assign(static_cast<std::size_t>(n_ * n_), Number{});
        halve(0, weights_.data(), n_, 0, n_);
        pivots_[0] = arrivals_[0];
        for (const Number& arrival : arrivals_) kept_ = kept_ && is_finite(arrival);
        if (one_root_)
            for (const Number& escape : escapes_) kept_ = kept_ && is_finite(escape);
        return kept_;
    }

    // Finds the arrival of word 0 and its escapes e_i0, i > 0, into `escapes` [n].
    bool find_first(Number& arrival, std::vector<Number>& escapes) {
        Step step = take_out_all_but_first();
        arrival = step.root()[0];  // rho^0
        escapes.assign(static_cast<std::size_t>(n_), Number{});
        // e_l0 = q_0l + Σ_{i < l} q_il e_i0, with e_00 = 0: the words below l were left when l went out.
        for (std::int64_t l = 1; l < n_; ++l)
            kept_ &= TreeRows<Number>::combine(escapes.data(), 1, l, step.factors(l) + 1, step.factors(l)[0],
                                               1, escapes.data() + l, check_);
        return kept_ && is_finite(arrival);
    }

  private:
    // The graph of the words first … end − 1, from which words are taken out: rows [root, words], and for
    // each word that went out the factors q_0l, q_il.
    struct Step {
        std::int64_t first, n;
        std::vector<Number>*rows_, *factors_;
        Number* root() { return rows_->data(); }
        Number* row(std::int64_t i) { return rows_->data() + (1 + i - first) * n; }
        // [1 + n] of word l: the root, then the words that were left when it went out, in order.
        Number* factors(std::int64_t l) { return factors_->data() + (l - first) * (n + 1); }
    };

    // A copy of some words' part of a graph whose first word is `origin` and whose rows have `stride`.
    Step copy(std::size_t depth, const Number* rows, std::int64_t stride, std::int64_t first,
              std::int64_t end, std::int64_t origin = 0) {
        while (levels_.size() <= depth) levels_.emplace_back();
        Level& level = levels_[depth];
        const std::int64_t n = end - first;
        level.rows.resize(static_cast<std::size_t>((n + 1) * n));
        level.factors.resize(static_cast<std::size_t>(n * (n + 1)));
        for (std::int64_t i = 0; i <= n; ++i) {
            const Number* from = rows + (i ? first - origin + i : 0) * stride + (first - origin);
            std::copy(from, from + n, level.rows.data() + i * n);
        }
        return {first, n, &level.rows, &level.factors};
    }

    Step take_out_all_but_first() {
        Step step = copy(0, weights_.data(), n_, 0, n_);
        for (std::int64_t l = n_ - 1; l > 0; --l) take_out(step, 0, l + 1, l, true);
        return step;
    }

    // Takes word l out while the words begin … end − 1 are left, of which it is the first or the last. A tree
    // gives l one head i, and what hung on l hangs on i by the detour over l.
    void take_out(Step& step, std::int64_t begin, std::int64_t end, std::int64_t l, bool record) {
        const std::int64_t from = l == begin ? begin + 1 : begin, left = end - begin - 1;
        const std::int64_t column = l - step.first;
        pace_.work(kCost * left * left);
        // d_l = Σ_i a_il (+ rho_l)
        const Number* incoming = step.row(from) + column;
        Number pivot = one_root_ ? Number{} : step.root()[column];
        for (std::int64_t i = 0; i < left; ++i) pivot = pivot + incoming[i * step.n];
        if (record) pivots_[l] = pivot;
        // q_0l = rho_l / d_l,  q_il = a_il / d_l
        Number* q = step.factors(l);
        const Number share = FromScore<Number>::make(0.0, 0.0) / pivot;
        q[0] = step.root()[column] * share;
        for (std::int64_t i = 0; i < left; ++i) q[1 + i] = incoming[i * step.n] * share;
        // rho_j += q_0l a_lj,  a_ij += q_il a_lj
        const Number* outgoing = step.row(l) + (from - step.first);
        kept_ &=
            TreeRows<Number>::add(step.root() + (from - step.first), step.n, 1, q, outgoing, left, check_);
        kept_ &= TreeRows<Number>::add(step.row(from) + (from - step.first), step.n, left, q + 1, outgoing,
                                       left, check_);
    }

    // Arrivals and escapes among the words first … end − 1 of a graph in which only they are left: the upper
    // half goes out and the lower one is answered by itself, then the other way round. A word l that went out
    // has its e_lj from those of the words that were left, so these come in the reverse order.
    void halve(std::size_t depth, const Number* rows, std::int64_t stride, std::int64_t first,
               std::int64_t end, std::int64_t origin = 0) {
        if (end - first == 1) {
            arrivals_[first] = rows[first - origin];  // rho^j: all other words are out
            return;
        }
        const std::int64_t middle = (first + end) / 2;
        Step step = copy(depth, rows, stride, first, end, origin);
        for (std::int64_t l = end - 1; l >= middle; --l) take_out(step, first, l + 1, l, first == 0);
        halve(depth + 1, step.root(), step.n, first, middle, first);
        for (std::int64_t l = middle; l < end; ++l) escape_from(step, l, first, l, first, middle);
        step = copy(depth, rows, stride, first, end, origin);
        for (std::int64_t l = first; l < middle; ++l) take_out(step, l, end, l, false);
        halve(depth + 1, step.root(), step.n, middle, end, first);
        for (std::int64_t l = middle - 1; l >= first; --l) escape_from(step, l, l + 1, end, middle, end);
    }

    // e_lj for j = first … end − 1, where the words left_begin … left_end − 1 were left when l went out.
    void escape_from(Step& step, std::int64_t l, std::int64_t left_begin, std::int64_t left_end,
                     std::int64_t first, std::int64_t end) {
        const Number* q = step.factors(l);
        pace_.work(kCost * (left_end - left_begin) * (end - first));
        kept_ &=
            TreeRows<Number>::combine(escapes_.data() + left_begin * n_ + first, n_, left_end - left_begin,
                                      q + 1, q[0], end - first, escapes_.data() + l * n_ + first, check_);
    }

    struct Level {
        std::vector<Number> rows, factors;
    };

    std::int64_t n_ = 0;
    bool one_root_ = false, check_ = false, kept_ = true;
    std::vector<Number> weights_, pivots_, arrivals_, escapes_;
    static constexpr std::int64_t kCost = std::is_same_v<Number, double> ? 4 : 256;  // of a sum of products
    Pace pace_;
    std::deque<Level> levels_;  // one for each halving; references to them stay valid
};

}  // namespace crfkit
