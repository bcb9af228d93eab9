#include "trees/k_best.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <queue>
#include <type_traits>

#include "base/compensated_sum.hpp"
#include "base/interruption.hpp"
#include "trees/best.hpp"

namespace crfkit {
namespace {

// An arc with its label that trees must have, or must not have.
struct Constraint {
    std::int32_t word, head, label;
    bool required;
};
using Constraints = std::vector<Constraint>;

// A tree with the score that decides its rank: exact, it is finite where a double may be infinite.
template <class Score>
struct Found : ScoredTree {
    Score total{};
};

// The best tree within constraints, with scores of either kind.
template <class Score>
class Decoder {
  public:
    explicit Decoder(const TreeView& tree)
        : tree_(tree), top_(tree.side() * tree.side(), kNever), label_(top_.size(), 0) {
        for (std::int64_t h = 0; h < tree.side(); ++h)
            for (std::int64_t m = 1; m < tree.side(); ++m)
                if (h != m) {
                    const double* scores = tree.labels(h, m);
                    const double* top = std::max_element(scores, scores + tree.n_labels);
                    top_[h * tree.side() + m] = *top;
                    label_[h * tree.side() + m] = static_cast<std::int32_t>(top - scores);
                }
    }

    Found<Score> best() {
        search_.find(converted(top_), tree_.n_words, tree_.one_root, false);
        return found(label_);
    }

    Found<Score> best(const Constraints& constraints) {
        restrict_to(constraints);
        search_.find(converted(arcs_), tree_.n_words, tree_.one_root, true);
        return found(labels_);
    }

    // The word whose arc the second best tree does without, after `best` found the first; 0: there is no
    // second one.
    std::int64_t detour(const Constraints& constraints, const ScoredTree& first) const {
        std::vector<Score> label_gain(tree_.side(), Score(kNever));
        for (std::int64_t m = 1; m <= tree_.n_words && tree_.n_labels > 1; ++m) {
            if (is_required(constraints, m)) continue;
            const std::int32_t head = first.heads[m - 1], label = first.labels[m - 1];
            const double second = top_label(constraints, head, m, label).score;
            label_gain[m] = Score(second) - Score(tree_.labels(head, m)[label]);
        }
        return search_.next(label_gain);
    }

    static bool is_required(const Constraints& constraints, std::int64_t word) {
        return std::any_of(constraints.begin(), constraints.end(),
                           [&](const Constraint& c) { return c.required && c.word == word; });
    }

  private:
    struct TopLabel {
        double score;
        std::int32_t label;
    };

    // The best label of an arc, but for those that must not be and for `other`.
    TopLabel top_label(const Constraints& constraints, std::int64_t head, std::int64_t word,
                       std::int32_t other) const {
        std::vector<char> closed(tree_.n_labels, 0);
        if (other >= 0) closed[other] = 1;
        for (const Constraint& c : constraints)
            if (!c.required && c.word == word && c.head == head) closed[c.label] = 1;
        TopLabel top{kNever, 0};
        for (std::int64_t r = 0; r < tree_.n_labels; ++r)
            if (const double score = tree_.labels(head, word)[r]; !closed[r] && score > top.score)
                top = {score, static_cast<std::int32_t>(r)};
        return top;
    }

    void restrict_to(const Constraints& constraints) {
        const std::int64_t side = tree_.side();
        arcs_ = top_;
        labels_ = label_;
        for (const Constraint& c : constraints)
            if (!c.required) {
                const TopLabel top = top_label(constraints, c.head, c.word, -1);
                arcs_[c.head * side + c.word] = top.score;
                labels_[c.head * side + c.word] = top.label;
            }
        for (const Constraint& c : constraints)
            if (c.required) {
                for (std::int64_t h = 0; h < side; ++h) arcs_[h * side + c.word] = kNever;
                arcs_[c.head * side + c.word] = tree_.labels(c.head, c.word)[c.label];
                labels_[c.head * side + c.word] = c.label;
            }
    }

    const Score* converted(const std::vector<double>& scores) {
        if constexpr (std::is_same_v<Score, double>) {
            return scores.data();
        } else {
            converted_.clear();
            for (const double score : scores) converted_.emplace_back(score);
            return converted_.data();
        }
    }

    Found<Score> found(const std::vector<std::int32_t>& labels) const {
        Found<Score> result;
        Total score;
        result.total = Score(0.0);
        for (std::int64_t m = 1; m <= tree_.n_words; ++m) {
            const std::int32_t head = search_.heads()[m], label = labels[head * tree_.side() + m];
            result.heads.push_back(head);
            result.labels.push_back(label);
            score.add(tree_.labels(head, m)[label]);
            result.total += Score(tree_.labels(head, m)[label]);
        }
        if constexpr (std::is_same_v<Score, double>)
            result.score = result.total = score.value();
        else
            result.score = result.total.sum.value();
        return result;
    }

    TreeView tree_;
    std::vector<double> top_, arcs_;            // [n + 1, n + 1] of the best label; within the constraints
    std::vector<std::int32_t> label_, labels_;  // these labels
    std::vector<Score> converted_;
    BestTree<Score> search_;
};

// The trees Y(I, O) that have all required arcs I and none of the arcs O: the first is known, the second was
// found by leaving out the arc `without`.
template <class Score>
struct Cell {
    Constraints constraints;
    Found<Score> first, second;
    Constraint without;
    bool operator<(const Cell& other) const { return other.second.total > second.total; }
};

Constraints with(Constraints constraints, Constraint one_more, bool required) {
    one_more.required = required;
    constraints.push_back(one_more);
    return constraints;
}

template <class Score>
class KBest {
  public:
    explicit KBest(const TreeView& tree) : decoder_(tree), n_words_(tree.n_words) {}

    std::vector<ScoredTree> find(std::int64_t k) {
        std::vector<Found<Score>> found;
        try {
            found.push_back(decoder_.best());
        } catch (const NoTree&) {
            return {};
        }
        // With a the arc `without` of a cell, Y(I, O) = Y(I + a, O) ∪ Y(I, O + a), disjoint. The best of the
        // one is the first of the cell, that of the other its second: the next best tree of all is the best
        // second.
        if (k > 1) open({}, found.front());
        while (static_cast<std::int64_t>(found.size()) < k && !cells_.empty()) {
            check_interruption();
            const Cell<Score> cell = cells_.top();
            cells_.pop();
            found.push_back(cell.second);
            if (static_cast<std::int64_t>(found.size()) == k) break;
            open(with(cell.constraints, cell.without, true), cell.first);
            open(with(cell.constraints, cell.without, false), cell.second);
        }
        // Rounding may have put trees of almost the same score in another order.
        std::stable_sort(found.begin(), found.end(),
                         [](const auto& a, const auto& b) { return a.total > b.total; });
        return {found.begin(), found.end()};
    }

  private:
    static Constraint arc_of(const ScoredTree& tree, std::int64_t word) {
        return {static_cast<std::int32_t>(word), tree.heads[word - 1], tree.labels[word - 1], false};
    }

    // Enters the trees within constraints if there is a second one.
    void open(Constraints constraints, const Found<Score>& first) {
        if (decoder_.best(constraints) == first) {
            if (const std::int64_t word = decoder_.detour(constraints, first)) {
                const Constraint without = arc_of(first, word);
                cells_.push({constraints, first, decoder_.best(with(constraints, without, false)), without});
            }
        } else {
            open_tied(constraints, first);
        }
    }

    // The same where `first` is only one of several best trees, and not the one that is found: the second is
    // the best of those that do without any one of its arcs.
    void open_tied(const Constraints& constraints, const Found<Score>& first) {
        std::optional<Cell<Score>> cell;
        for (std::int64_t word = 1; word <= n_words_; ++word) {
            check_interruption();
            if (Decoder<Score>::is_required(constraints, word)) continue;
            const Constraint without = arc_of(first, word);
            try {
                Found<Score> second = decoder_.best(with(constraints, without, false));
                if (!cell || second.total > cell->second.total)
                    cell = Cell<Score>{constraints, first, std::move(second), without};
            } catch (const NoTree&) {  // every tree within the constraints has this arc
            }
        }
        if (cell) cells_.push(std::move(*cell));
    }

    Decoder<Score> decoder_;
    std::int64_t n_words_;
    std::priority_queue<Cell<Score>> cells_;
};

// Whether exact scores are needed. Column 0 and the diagonal are no arcs.
bool are_far(const TreeView& tree) {
    bool unusual = false;
    for (std::int64_t i = 0; i < tree.size(); ++i) unusual |= !(std::abs(tree.scores[i]) < kFarScore);
    if (!unusual) return false;
    bool far = false;
    for (std::int64_t h = 0; h < tree.side(); ++h)
        for (std::int64_t m = 1; m < tree.side(); ++m)
            for (std::int64_t r = 0; r < tree.n_labels && h != m; ++r) {
                const double score = tree.labels(h, m)[r];
                if (is_unusable(score)) return false;
                far |= std::abs(score) >= kFarScore && score > kNever;
            }
    return far;
}

}  // namespace

ScoredTree best_tree(const TreeView& tree) {
    if (are_far(tree)) return Decoder<ExactScore>(tree).best();
    return Decoder<double>(tree).best();
}

std::vector<ScoredTree> k_best_trees(const TreeView& tree, std::int64_t k) {
    return are_far(tree) ? KBest<ExactScore>(tree).find(k) : KBest<double>(tree).find(k);
}

}  // namespace crfkit
