#include "trees/sample.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "trees/elimination.hpp"

namespace crfkit {
namespace {

// Exact samples, one head after the other (Colbourn, Myrvold and Neufeld 1996): given the heads drawn so far,
//   P(head of m is h) = a_hm e_hm / rho^m,
// the marginal of the arc in the graph where each word is one with the head drawn for it.
//
// The graph in which words whose heads are drawn are one with them. A group of words is named by the one in
// it whose head is not drawn yet, or by 0 when it hangs on the root.
template <class Number>
class ShrinkingGraph {
  public:
    ShrinkingGraph(const ArcSums& sums, std::int64_t n, bool one_root)
        : n_(n), arcs_(sums.scores), one_root_(one_root), weights_((n + 1) * (n + 1)), group_(n + 1) {
        const std::vector<double>& arcs = sums.scores;
        for (std::int64_t m = 1; m <= n; ++m) {
            double top = kNever;  // of the words as heads; of the root too where it is like a word
            for (std::int64_t h = one_root ? 1 : 0; h <= n; ++h) top = std::max(top, arcs[h * (n + 1) + m]);
            if (top == kNever) top = arcs[m];
            for (std::int64_t h = 0; h <= n; ++h)
                if (arcs[h * (n + 1) + m] == kNever) {
                    all_exist_ &= h == m;
                } else {
                    Number& weight = weights_[h * (n + 1) + m];
                    if constexpr (std::is_same_v<Number, Far>)
                        weight = Far{widened(sum_of(sums, h * (n + 1) + m)),
                                     ExactSum(top_of(sums, h * (n + 1) + m))};
                    else
                        weight = FromScore<Number>::make(arcs[h * (n + 1) + m] - top, 0.0);
                    kept_ &= !is_faded(weight) && is_finite(weight);
                }
        }
        for (std::int64_t word = 0; word <= n; ++word) group_[word] = word;
    }

    // Draws the head of a word from a uniform number; −1 where a number left the range that it has.
    std::int64_t draw(std::int64_t word, double uniform) {
        if (!kept_ || !find_odds(word)) return -1;
        double sum = 0;
        for (const double odds : odds_) sum += odds;
        double left = uniform * sum;
        std::int64_t head = -1;
        for (std::int64_t h = 0; h <= n_ && left >= 0; ++h)
            if (odds_[h] > 0) {
                head = h;
                left -= odds_[h];
            }
        if (head >= 0) join(word, head);
        return head;
    }

  private:
    // The words whose heads are not drawn that are in one part with `word`: they reach it, and it reaches
    // them. The word comes first.
    std::vector<std::int64_t> part_with(std::int64_t word) const {
        std::vector<std::int64_t> part{word};
        if (all_exist_) {
            for (std::int64_t other = 1; other <= n_; ++other)
                if (other != word && group_[other] == other) part.push_back(other);
            return part;
        }
        const std::int64_t side = n_ + 1;
        std::vector<char> linked(side * side, 0);  // from a group to a word whose head is not drawn
        for (std::int64_t h = 1; h <= n_; ++h)
            for (std::int64_t m = 1; m <= n_; ++m)
                if (group_[h] > 0 && group_[m] == m && exists(h, m)) linked[group_[h] * side + m] = 1;
        const std::vector<char> below = reached(word, linked, side, 1),
                                above = reached(word, linked, 1, side);
        for (std::int64_t other = 1; other <= n_; ++other)
            if (other != word && above[other] && below[other]) part.push_back(other);
        return part;
    }

    // What is reached from a word where linked[from · out + to · in] is set.
    std::vector<char> reached(std::int64_t word, const std::vector<char>& linked, std::int64_t out,
                              std::int64_t in) const {
        std::vector<char> seen(n_ + 1, 0);
        std::vector<std::int64_t> open{word};
        seen[word] = 1;
        while (!open.empty()) {
            const std::int64_t from = open.back();
            open.pop_back();
            for (std::int64_t to = 1; to <= n_; ++to)
                if (!seen[to] && linked[from * out + to * in]) {
                    seen[to] = 1;
                    open.push_back(to);
                }
        }
        return seen;
    }

    bool exists(std::int64_t h, std::int64_t m) const { return h != m && arcs_[h * (n_ + 1) + m] > kNever; }

    // odds_[h] = a_hm e_hm / rho^m: the probability that h is the head of word m, given those that are drawn.
    // Only the part with m takes part, and m comes first in it, so that one elimination gives rho^m and all
    // e_hm. Heads in one group share its row: their weights add up, and each has its share of the sum.
    bool find_odds(std::int64_t word) {
        const std::vector<std::int64_t> part = part_with(word);
        const auto n = static_cast<std::int64_t>(part.size());
        std::vector<std::int64_t> row(n_ + 1, 0);  // of each group in the elimination
        for (std::int64_t i = 0; i < n; ++i) row[part[i]] = 1 + i;
        bool from_outside = false;
        for (std::int64_t h = 1; h <= n_ && one_root_; ++h)
            for (const std::int64_t m : part) from_outside |= row[group_[h]] == 0 && exists(h, m);
        const bool takes_root = one_root_ && !from_outside;  // this part has the word below the only root
        elimination_.begin(n, takes_root);
        for (std::int64_t h = 0; h <= n_; ++h) {
            if (!is_head(h, takes_root)) continue;
            Number* weights = elimination_.weights(row[group_[h]]);
            for (std::int64_t j = 0; j < n; ++j)
                if (exists(h, part[j]) && group_[h] != part[j])
                    weights[j] = weights[j] + weights_[h * (n_ + 1) + part[j]];
        }
        Number arrival;
        if (!elimination_.find_first(arrival, escapes_)) return false;
        odds_.assign(n_ + 1, 0.0);
        for (std::int64_t h = 0; h <= n_; ++h) {
            if (!is_head(h, takes_root) || !exists(h, word) || group_[h] == word) continue;
            Number p = weights_[h * (n_ + 1) + word] / arrival;
            if (const std::int64_t at = row[group_[h]]) p = p * escapes_[at - 1];
            odds_[h] = to_double(p);
            if (!std::isfinite(odds_[h])) return false;
        }
        return true;
    }

    // The root is no head where another word has the only arc from it; until that is drawn, it is one only
    // for the part that has this word.
    bool is_head(std::int64_t h, bool takes_root) const {
        return h > 0 || !one_root_ ? group_[h] >= 0 : takes_root;
    }

    void join(std::int64_t word, std::int64_t head) {
        if (head == 0 && one_root_) {
            one_root_ = false;  // from now on, what hangs on this word hangs on the root
            group_[0] = -1;
        }
        const std::int64_t to = head == 0 ? 0 : group_[head];
        for (std::int64_t w = 1; w <= n_; ++w)
            if (group_[w] == word) group_[w] = to;
    }

    std::int64_t n_;
    const std::vector<double>& arcs_;  // [n + 1, n + 1] scores
    bool one_root_;                    // and its arc is not drawn yet
    bool kept_ = true, all_exist_ = true;
    std::vector<Number> weights_;      // [n + 1, n + 1] exp(score − shift of the dependent)
    std::vector<std::int64_t> group_;  // [n + 1] of each word and the root; −1: no head any more
    Elimination<Number> elimination_;
    std::vector<Number> escapes_;
    std::vector<double> odds_;  // [n + 1]
};

template <class Number>
bool draw_heads(const TreeView& tree, const ArcSums& arcs, const double* uniforms, std::int32_t* heads) {
    ShrinkingGraph<Number> graph(arcs, tree.n_words, tree.one_root);
    for (std::int64_t i = 0; i < tree.n_words; ++i) {
        const std::int64_t head = graph.draw(i + 1, uniforms[i]);
        if (head < 0) return false;
        heads[i] = static_cast<std::int32_t>(head);
    }
    return true;
}

}  // namespace

void tree_sample(const TreeView& tree, const double* uniforms, std::int32_t* heads, std::int32_t* labels) {
    const ArcSums arcs = summed_arcs(tree);
    parts_of(arcs.scores.data(), tree.n_words, tree.one_root);  // throws for a graph without trees
    const bool drawn = arcs.far ? draw_heads<Far>(tree, arcs, uniforms, heads)
                                : draw_heads<double>(tree, arcs, uniforms, heads) ||
                                      draw_heads<Wide>(tree, arcs, uniforms, heads);
    if (!drawn)
        throw std::invalid_argument(
            "no tree can be drawn: expected scores that are finite numbers, or −inf to forbid.");
    if (!labels) return;
    for (std::int64_t i = 0; i < tree.n_words; ++i) {
        const double* scores = tree.labels(heads[i], i + 1);
        const std::int64_t arc = heads[i] * tree.side() + i + 1;
        double left = tree.n_labels > 1 ? uniforms[tree.n_words + i] : 0.0;
        for (std::int64_t r = 0; r < tree.n_labels && left >= 0; ++r)
            if (scores[r] > kNever) {
                labels[i] = static_cast<std::int32_t>(r);
                left -= std::exp(scores[r] - top_of(arcs, arc)) / sum_of(arcs, arc);
            }
    }
}

}  // namespace crfkit
