#include "trees/tree_dual.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

#include "trees/graph.hpp"
#include "trees/k_best.hpp"

namespace crfkit {

namespace {

constexpr double kRounding = 1e-9;          // of scores, relative
constexpr std::int64_t kRootRounds = 150;   // evaluations of L before a set of trees is halved
constexpr std::int64_t kBranchRounds = 40;  // the same for its halves
constexpr int kPatience = 8;                // evaluations without a lower bound before steps become smaller

}  // namespace

TreeDual::TreeDual(const HeadAutomata& parts, const double* scores, bool one_root)
    : parts_(parts), scores_(scores), one_root_(one_root) {}

bool TreeDual::is_closed(double bound) const {
    return bound <= best_.score + kRounding * std::max(1.0, std::abs(best_.score));
}

// max_z, and a better tree where z is one. −inf where there is no tree.
double TreeDual::best_of_trees(const Branch& branch) {
    const std::int64_t n = parts_.n_words();
    dense_.assign(static_cast<std::size_t>((n + 1) * (n + 1)), kNever);
    for (std::int64_t a = 0; a < parts_.n_arcs(); ++a)
        if (branch.allowed[a])
            dense_[parts_.arcs()[a].head * (n + 1) + parts_.arcs()[a].dependent] =
                scores_[a] + branch.u[a] + branch.v[a];
    std::fill(tree_.begin(), tree_.end(), 0);
    ScoredTree found;
    try {
        found = best_tree({n, 1, dense_.data(), one_root_});
    } catch (const NoTree&) {
        return kNever;
    }
    std::vector<std::int32_t> tree = parts_.arcs_of(found.heads);
    for (const std::int32_t a : tree) tree_[a] = 1;
    if (const double score = parts_.score(scores_, tree); score > best_.score) {
        best_.score = score;
        best_.tree = std::move(tree);
    }
    return found.score;
}

// The best dependents on one side, where the head hangs on arc number k of those into it. Nobody is his own
// grandparent.
TreeDual::Reading TreeDual::read_side(const Branch& branch, std::int32_t head, Side side, std::int64_t k) {
    const auto& arcs = parts_.out(head, side);
    const auto D = static_cast<std::int64_t>(arcs.size());
    forward_.assign(static_cast<std::size_t>(D), kNever);
    back_.assign(static_cast<std::size_t>(D), -1);
    const std::int32_t leaf = parts_.leaf(head, side);
    Reading best{leaf < 0 ? kNever : scores_[leaf], -1};
    for (std::int64_t j = 0; j < D; ++j) {
        const std::int32_t b = arcs[j];
        const std::int32_t part = head == 0 ? -1 : parts_.grandparent(b, k);
        if (!branch.allowed[b] || (head != 0 && part < 0)) continue;
        const std::int32_t first = parts_.siblings(b, 0);
        double top = scores_[first - 1];
        for (std::int64_t i = 0; i < j; ++i)
            if (const double score = forward_[i] + scores_[first + i]; score > top) {
                top = score;
                back_[j] = i;
            }
        forward_[j] = top - branch.u[b] + (part < 0 ? 0.0 : scores_[part]);
        if (const double score = forward_[j] + scores_[parts_.stop(b)]; score > best.score) best = {score, j};
    }
    return best;
}

void TreeDual::mark_side(std::int32_t head, Side side, std::int64_t last) {
    for (; last >= 0; last = back_[last]) out_[parts_.out(head, side)[last]] = 1;
}

// Where one word hangs on the root.
double TreeDual::read_only_root(const Branch& branch) {
    double best = kNever;
    std::int32_t root = -1;
    for (const std::int32_t b : parts_.out(0, Side::right)) {
        if (!branch.allowed[b]) continue;
        const double score = scores_[parts_.siblings(b, -1)] + scores_[parts_.stop(b)] - branch.u[b];
        if (score > best) {
            best = score;
            root = b;
        }
    }
    if (root >= 0) out_[root] = 1;
    return best;
}

// max_(x, y) of one automaton.
double TreeDual::read_head(const Branch& branch, std::int32_t head) {
    if (!parts_.may_repeat(head)) return read_only_root(branch);
    if (head == 0) {
        const Reading found = read_side(branch, 0, Side::right, 0);
        mark_side(0, Side::right, found.last);
        return found.score;
    }
    double best = kNever;
    std::int32_t hangs = -1;
    const std::int32_t first = parts_.first_into(head);
    for (std::int32_t a = first; a < first + parts_.n_into(head); ++a) {
        if (!branch.allowed[a]) continue;
        const double score = read_side(branch, head, Side::left, a - first).score +
                             read_side(branch, head, Side::right, a - first).score - branch.v[a];
        if (score > best) {
            best = score;
            hangs = a;
        }
    }
    if (hangs < 0) return kNever;
    in_[hangs] = 1;
    for (const Side side : {Side::left, Side::right})
        mark_side(head, side, read_side(branch, head, side, hangs - first).last);
    return best;
}

// L(u, v).
double TreeDual::evaluate(const Branch& branch) {
    ++best_.n_iterations;
    std::fill(out_.begin(), out_.end(), 0);
    std::fill(in_.begin(), in_.end(), 0);
    double value = best_of_trees(branch);
    for (std::int32_t head = 0; head <= parts_.n_words() && value > kNever; ++head)
        value += read_head(branch, head);
    return value;
}

// Polyak's steps, (L − the best score) / |subgradient|², which become smaller while the bound does not fall.
void TreeDual::lower(Branch& branch, std::int64_t most_iterations) {
    const std::int64_t A = parts_.n_arcs();
    shares_.assign(static_cast<std::size_t>(A), 0.0);
    std::vector<double> u = branch.u, v = branch.v;  // of the lowest bound
    double rate = 1;
    int waited = 0;
    std::int64_t round = 0;
    while (round < most_iterations) {
        ++round;
        const double value = evaluate(branch);
        if (value < branch.bound) {
            branch.bound = value;
            u = branch.u;
            v = branch.v;
            waited = 0;
        } else if (++waited == kPatience) {
            rate *= 0.6;
            waited = 0;
        }
        if (is_closed(branch.bound)) return;
        double size = 0;
        for (std::int64_t a = 0; a < A; ++a) {
            size += (tree_[a] != out_[a]) + (tree_[a] != in_[a]);
            shares_[a] += (tree_[a] + out_[a] + in_[a]) / 3.0;
        }
        if (size == 0) break;  // they agree
        const double step = rate * (value - best_.score) / size;
        for (std::int64_t a = 0; a < A; ++a) {
            branch.u[a] -= step * (tree_[a] - out_[a]);
            branch.v[a] -= step * (tree_[a] - in_[a]);
        }
    }
    branch.u = std::move(u);
    branch.v = std::move(v);
    branch.disputed = most_disputed(branch, static_cast<double>(round));
    if (branch.disputed < 0) branch.bound = best_.score;  // the only tree, which has been seen
}

// The arc that was chosen about every other time; −1: only one tree is left.
std::int32_t TreeDual::most_disputed(const Branch& branch, double n_rounds) const {
    std::int32_t found = -1;
    double most = -1;
    for (std::int32_t m = 1; m <= parts_.n_words(); ++m) {
        const std::int32_t first = parts_.first_into(m), last = first + parts_.n_into(m);
        if (std::count(branch.allowed.begin() + first, branch.allowed.begin() + last, 1) < 2) continue;
        for (std::int32_t a = first; a < last; ++a)
            if (const double dispute = std::min(shares_[a], n_rounds - shares_[a]);
                branch.allowed[a] && dispute > most) {
                most = dispute;
                found = a;
            }
    }
    return found;
}

TreeDual::Found TreeDual::search(std::vector<std::int32_t> tree, const double* u, const double* v,
                                 std::int64_t most_iterations) {
    const auto A = static_cast<std::size_t>(parts_.n_arcs());
    for (std::vector<char>* marks : {&tree_, &out_, &in_}) marks->assign(A, 0);
    best_ = {tree, parts_.score(scores_, tree), 0, 0};
    Branch all{std::numeric_limits<double>::infinity(), std::vector<char>(A, 1), std::vector<double>(A, 0.0),
               std::vector<double>(A, 0.0)};
    for (std::size_t a = 0; a < A; ++a) all.allowed[a] = scores_[a] > kNever;
    Branch given = all;
    given.u.assign(u, u + A);
    given.v.assign(v, v + A);
    if (evaluate(given) < evaluate(all)) std::swap(given, all);
    lower(all, std::min(kRootRounds, most_iterations));
    std::priority_queue<Branch> open;
    open.push(std::move(all));
    while (!is_closed(open.top().bound) && best_.n_iterations < most_iterations) {
        const Branch top = open.top();
        open.pop();
        const std::int32_t m = parts_.arcs()[top.disputed].dependent;
        for (const bool required : {true, false}) {
            Branch half = top;
            if (required) std::fill_n(half.allowed.begin() + parts_.first_into(m), parts_.n_into(m), 0);
            half.allowed[top.disputed] = required;
            lower(half, kBranchRounds);
            open.push(std::move(half));
        }
    }
    best_.bound = std::max(open.top().bound, best_.score);
    return best_;
}

}  // namespace crfkit
