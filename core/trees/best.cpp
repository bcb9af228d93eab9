#include "trees/best.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/interruption.hpp"
#include "kernels/tree_rows.hpp"

namespace crfkit {
namespace {

enum : char { kNew, kOnPath, kReached };

bool is_absent(double score) { return score == kNever; }
bool is_absent(const ExactScore& score) { return !score.exists; }
bool is_number(double score) { return !std::isnan(score); }
bool is_number(const ExactScore&) { return true; }

// The rows of TreeKernels for both kinds of scores.
std::int64_t largest(const double* x, std::int64_t n) { return tree_kernels().largest(x, n); }
std::int64_t largest(const ExactScore* x, std::int64_t n) {
    std::int64_t place = 0;
    for (std::int64_t j = 1; j < n; ++j)
        if (x[j] > x[place]) place = j;
    return place;
}
void merge(double* into, double into_less, const double* from, double from_less, std::int64_t n) {
    tree_kernels().merge(into, into_less, from, from_less, n);
}
void merge(ExactScore* into, const ExactScore& into_less, const ExactScore* from, const ExactScore& from_less,
           std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) {
        const ExactScore a = into[j] - into_less, b = from[j] - from_less;
        into[j] = a > b ? a : b;
    }
}

// Places in a walk around the tree: a word's descendants, itself included, are the words first … last.
struct Descent {
    explicit Descent(const std::vector<std::int32_t>& heads) : first(heads.size()), last(heads.size()) {
        const std::size_t side = heads.size();
        std::vector<std::int32_t> child(side, -1), sibling(side, -1), open{0};
        for (std::size_t word = side; word-- > 1;) {
            sibling[word] = child[heads[word]];
            child[heads[word]] = static_cast<std::int32_t>(word);
        }
        std::int32_t place = 0;
        first[0] = place++;
        while (!open.empty()) {
            const std::int32_t word = open.back(), next = child[word];
            if (next < 0) {
                last[word] = place - 1;
                open.pop_back();
            } else {
                child[word] = sibling[next];
                first[next] = place++;
                open.push_back(next);
            }
        }
    }
    bool below(std::int64_t word, std::int64_t top) const {
        return first[top] <= first[word] && first[word] <= last[top];
    }
    std::vector<std::int32_t> first, last;
};

}  // namespace

template <class Score>
void BestTree<Score>::begin(const Score* arcs, std::int64_t n_words, bool keep_rows) {
    n_ = n_words;
    side_ = n_words + 1;
    arcs_ = arcs;
    keep_rows_ = keep_rows;
    rows_.resize(static_cast<std::size_t>((keep_rows ? 2 * n_ : n_) * side_));
    nodes_.clear();
    nodes_.reserve(static_cast<std::size_t>(2 * n_));
    node_of_.assign(static_cast<std::size_t>(side_), -1);
    for (std::int64_t m = 1; m <= n_; ++m) {
        Node word;
        word.row = static_cast<std::int32_t>(m - 1);
        word.words = {static_cast<std::int32_t>(m)};
        nodes_.push_back(std::move(word));
        node_of_[m] = static_cast<std::int32_t>(m - 1);
    }
    for (std::int64_t h = 0; h <= n_; ++h)
        for (std::int64_t m = 1; m <= n_; ++m) rows_[(m - 1) * side_ + h] = arcs[h * side_ + m];
    state_.assign(static_cast<std::size_t>(2 * n_), kNew);
    replaced_.assign(static_cast<std::size_t>(side_), Score(0.0));
    heads_.assign(static_cast<std::size_t>(side_), 0);
    path_.clear();
    root_word_ = 0;
}

template <class Score>
void BestTree<Score>::find(const Score* arcs, std::int64_t n_words, bool one_root, bool keep_rows) {
    begin(arcs, n_words, keep_rows);
    one_root_ = one_root;
    for (std::int64_t m = 1; m <= n_; ++m)
        if (state_[node_of_[m]] == kNew) grow_path(node_of_[m], one_root);
    open_cycles();
}

// The contraction phase of Chu–Liu–Edmonds from one node: goes from node to head, contracting the cycles that
// close, until it meets the root or a path that did. Each node is chosen for once and a sentence of n words
// has at most 2 n − 1 nodes, each of which costs O(n).
template <class Score>
void BestTree<Score>::grow_path(std::int32_t start, bool one_root) {
    Pace pace;
    path_.assign(1, start);
    state_[start] = kOnPath;
    for (;;) {
        const std::int32_t node = path_.back();
        pace.work(4 * side_);
        if (!choose(node, one_root)) break;
        const std::int32_t above = node_of_[nodes_[node].head];
        if (state_[above] == kReached) break;
        if (state_[above] == kNew) {
            path_.push_back(above);
        } else {
            const auto first = std::find(path_.begin(), path_.end(), above) - path_.begin();
            const std::int32_t cycle = contract(static_cast<std::size_t>(first));
            path_.resize(static_cast<std::size_t>(first));
            path_.push_back(cycle);
        }
        state_[path_.back()] = kOnPath;
    }
    for (const std::int32_t node : path_) state_[node] = kReached;
}

// head(v) = argmax_h score(h → v), over the heads outside of v. False where it is the root.
template <class Score>
bool BestTree<Score>::choose(std::int32_t at, bool one_root) {
    Node& node = nodes_[at];
    const Score* scores = row(at);
    const std::int64_t first = one_root ? 1 : 0;
    std::int64_t head = first + largest(scores + first, side_ - first);
    if (is_absent(scores[head])) head = 0;
    const std::int32_t word = *std::min_element(node.words.begin(), node.words.end());
    if (is_absent(scores[head])) refuse_unreached(word, node.words.size() > 1);
    if (!is_number(scores[head])) throw std::invalid_argument("the score of an arc is not a number");
    node.head = static_cast<std::int32_t>(head);
    node.score = scores[head];
    enter(node);
    if (head > 0) return true;
    if (one_root && root_word_) refuse_two_roots(root_word_, word);
    root_word_ = word;
    return false;
}

// Where the arc of a node enters it, argmax_m score(head → m) − replaced(m), and the best place for another
// one from the same head.
template <class Score>
void BestTree<Score>::enter(Node& node) {
    Score top(kNever);
    node.word = node.words.front();
    node.other_word = Score(kNever);
    for (const std::int32_t word : node.words) {
        const Score score = arcs_[node.head * side_ + word] - replaced_[word];
        if (score > top) {
            node.other_word = top;
            node.word = word;
            top = score;
        } else if (score > node.other_word) {
            node.other_word = score;
        }
    }
}

// Makes one node C of those from path_[first] on, which form a cycle; its number. An arc into a member v of
// the cycle takes the place of the one that v has:
//   score(h → C) = max_{v in C} (score(h → v) − score(head(v) → v))
// Rows of scores are merged two at a time; `less` is subtracted from what is there, once.
template <class Score>
std::int32_t BestTree<Score>::contract(std::size_t first) {
    const auto number = static_cast<std::int32_t>(nodes_.size());
    Node cycle;
    cycle.row = nodes_[path_[first]].row;
    if (keep_rows_) {
        cycle.row = number;
        std::copy_n(row(path_[first]), side_, rows_.data() + number * side_);
    }
    Score* scores = rows_.data() + cycle.row * side_;
    Score less = nodes_[path_[first]].score;
    for (std::size_t i = first; i < path_.size(); ++i) {
        Node& member = nodes_[path_[i]];
        if (i > first) {
            merge(scores, less, row(path_[i]), member.score, side_);
            less = Score(0.0);
        }
        member.parent = number;
        for (const std::int32_t word : member.words) {
            replaced_[word] += member.score;
            node_of_[word] = number;
        }
        cycle.words.insert(cycle.words.end(), member.words.begin(), member.words.end());
    }
    for (const std::int32_t word : cycle.words) scores[word] = Score(kNever);
    nodes_.push_back(std::move(cycle));
    return number;
}

// The expansion phase. The arcs of the outermost nodes are in the tree; within a cycle those of all members
// but the one that is entered, whose arc the entering one replaces. Later nodes are further out, so they come
// first.
template <class Score>
void BestTree<Score>::open_cycles() {
    for (Node& node : nodes_) node.in_tree = true;
    for (auto at = static_cast<std::int32_t>(nodes_.size()); at-- > 0;) {
        const Node& node = nodes_[at];
        if (!node.in_tree) continue;
        heads_[node.word] = node.head;
        for (std::int32_t inner = node.word - 1; inner != at; inner = nodes_[inner].parent)
            nodes_[inner].in_tree = false;
    }
}

// The second best tree differs from the best by one exchange: the arc of a node v that is in the tree for
// another one into v, from a head that is no descendant of v (or it would close a cycle). Its score is less
// by
//   min_v (score(head(v) → v) − max_{h not below v} score(h → v)),
// where scores into a cycle are those of its node: what they replace within is part of them.
template <class Score>
std::int64_t BestTree<Score>::next(const std::vector<Score>& label_gain) const {
    const Descent descent(heads_);
    Score most(kNever);
    std::int64_t word = 0;
    for (std::size_t at = 0; at < nodes_.size(); ++at) {
        const Node& node = nodes_[at];
        if (!node.in_tree) continue;
        Score gain = node.other_word - node.score;
        if (label_gain[node.word] > gain) gain = label_gain[node.word];
        const Score* scores = row(static_cast<std::int32_t>(at));
        // A tree with one root takes a second arc from it in exchange for no other.
        for (std::int64_t h = one_root_ ? 1 : 0; h < side_; ++h)
            if (h != node.head && !is_absent(scores[h]) && !descent.below(h, node.word)) {
                const Score other = scores[h] - node.score;
                if (other > gain) gain = other;
            }
        if (gain > most) {
            most = gain;
            word = node.word;
        }
    }
    return word;
}

template class BestTree<double>;
template class BestTree<ExactScore>;

}  // namespace crfkit
