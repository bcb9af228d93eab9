// Sums over all spanning trees with parts of second order, by belief propagation (Smith and Eisner 2008).
//
// One factor knows which heads make a tree (sums over spanning trees are exact), one for each head its
// dependents and where it hangs itself (HeadAutomata; sums over its readings are exact). They share the
// variables "head of word m". Messages are logarithms: `down_[a]` from the automaton of word m to its arc a,
// `up_[b]` from the automaton of the head of b, as odds of b against all other heads of its dependent. With
// beliefs p of the tree factor at scores θ + up + down,
//   arc a into h, as the automaton of h reads it:      log p_a − down_a
//   arc b out of h, as the automaton of h reads it:    log (p_b / (1 − p_b)) − up_b.
// What the tree factor forbids, the automata allow (a word that is its own grandparent, a root without
// dependents, with a score of 0), so that nothing counts twice: without scores of second order all answers
// are exact. Else log Z is Bethe's approximation.
#include <algorithm>
#include <cmath>

#include "base/buffer.hpp"
#include "kernels/tree_rows.hpp"
#include "trees/head_automata.hpp"
#include "trees/label_sums.hpp"
#include "trees/second_order_sums.hpp"
#include "trees/sums.hpp"
#include "trees/tree_dual.hpp"

namespace crfkit {
namespace {

constexpr int kMostRounds = 10;
constexpr double kClose = 1e-4;      // beliefs that change by less are final
constexpr double kLeast = 1e-12;     // probabilities are kept this far from 0 and 1 in messages
constexpr double kOld = 0.3;         // the share of a message that is its old value
constexpr double kMostMessage = 30;  // of the logarithm of a message

double log_odds(double prob) {
    prob = std::clamp(prob, kLeast, 1 - kLeast);
    return std::log(prob) - std::log1p(-prob);
}

double entropy_of(double prob) { return prob > 0 ? -prob * std::log(prob) : 0.0; }

// log(exp(a) + exp(b))
double log_add(double a, double b) {
    if (a < b) std::swap(a, b);
    return b == kNever ? a : a + std::log1p(std::exp(b - a));
}

class SpanningSums final : public SecondOrderSums {
  public:
    explicit SpanningSums(bool one_root) : one_root_(one_root) {}

    void load(std::int64_t n_words, std::span<const Arc> arcs) override {
        parts_.build(n_words, arcs, one_root_);
    }
    const TreeParts& parts() const override { return parts_; }
    double marginals(std::int64_t R, const double* scores, double* probs) override;
    void hessian_vector(std::int64_t R, const double* scores, const double* direction, double* out) override;
    ScoredTree best(std::int64_t R, const double* scores) override;
    BoundedTree bounded_best(std::int64_t R, const double* scores, std::int64_t most_iterations) override;
    ScoredTree minimum_risk(std::int64_t R, const double* probs) override;
    std::vector<ScoredTree> k_best(std::int64_t R, const double* scores, std::int64_t k) override;

  private:
    void sum_trees();
    // What an automaton reads on one side: sums over readings that end with each dependent, and over those
    // that begin behind it.
    struct Reading {
        std::vector<double> arcs, forward, backward;  // [dependents]
        double total = 0;
    };
    // Numbers as they are, and as logarithms.
    struct PlainSpace {
        static constexpr double kZero = 0;
        static const double* scores(const SpanningSums& sums) { return sums.exponentials_.data(); }
        static double of(double score) { return std::exp(score); }
        static double add(double a, double b) { return a + b; }
        static double times(double a, double b) { return a * b; }
        static bool is_usable(double total) { return total > 1e-250 && total < 1e250; }
        static double log_of(double total) { return std::log(total); }
        struct Share {
            Share(double prob, double total) : factor(prob / total) {}
            double operator()(double number) const { return factor * number; }
            double factor;
        };
    };
    struct LogSpace {
        static constexpr double kZero = kNever;
        static const double* scores(const SpanningSums& sums) { return sums.scores_.data(); }
        static double of(double score) { return score; }
        static double add(double a, double b) { return log_add(a, b); }
        static double times(double a, double b) { return a + b; }
        static bool is_usable(double) { return true; }
        static double log_of(double total) { return total; }
        struct Share {
            Share(double prob, double total) : prob(prob), total(total) {}
            double operator()(double number) const { return prob * std::exp(number - total); }
            double prob, total;
        };
    };

    double read_head(std::int32_t head);
    double read_only_root();
    template <class Space>
    bool read_sides(std::int32_t head, std::int32_t n_into);
    template <class Space>
    void read_side(std::int32_t head, Side side, std::int64_t k);
    template <class Space>
    void add_side(std::int32_t head, Side side, std::int64_t k, double prob);
    static void move(double& message, double now) { message = kOld * message + (1 - kOld) * now; }
    double bethe_entropies() const;
    void read_arcs();
    TreeView dense(std::int64_t R, const double* arcs, bool logarithms = false);
    bool is_tree(const std::vector<std::int32_t>& tree) const;
    std::vector<std::int32_t> climb(std::int64_t R, const double* scores);
    ScoredTree labelled(const std::vector<std::int32_t>& tree, std::int64_t R, const double* scores) const;
    double grandparent_score(std::int32_t arc, std::int64_t k) const {
        if (parts_.arcs()[arc].head == 0) return 0;
        const std::int32_t part = parts_.grandparent(arc, k);
        return part < 0 ? 0.0 : scores_[part];
    }

    const bool one_root_;
    HeadAutomata parts_;
    LabelSums labels_;
    Buffer<double> scores_;             // [parts] labels summed
    Buffer<double> up_, down_, probs_;  // [arcs]; probs_: of the tree factor
    Buffer<double> in_, out_;           // [arcs] scores of arcs as automata read them
    Buffer<double> beliefs_;            // [parts] of the automata; of arcs: by their heads
    Buffer<double> exponentials_;       // [parts] exp of the scores of second order
    std::vector<Reading> readings_;     // by arc into the head at hand, and side
    Buffer<double> log_readings_;       // of each arc into it
    Buffer<double> dense_, dense_probs_, moved_, shifted_, more_, less_, expected_;
    double log_trees_ = 0;
};

// Probabilities of arcs at θ + up + down.
void SpanningSums::sum_trees() {
    const std::int64_t n = parts_.n_words(), A = parts_.n_arcs();
    dense_.assign((n + 1) * (n + 1), kNever);
    dense_probs_.resize((n + 1) * (n + 1));
    for (std::int64_t a = 0; a < A; ++a) {
        const Arc arc = parts_.arcs()[a];
        dense_[arc.head * (n + 1) + arc.dependent] = scores_[a] + up_[a] + down_[a];
    }
    log_trees_ = tree_marginals({n, 1, dense_.data(), one_root_}, dense_probs_.data());
    for (std::int64_t a = 0; a < A; ++a) {
        const Arc arc = parts_.arcs()[a];
        probs_[a] = dense_probs_[arc.head * (n + 1) + arc.dependent];
    }
}

// Sums over what the head may have on one side, where it hangs on arc number k of those into it.
template <class Space>
void SpanningSums::read_side(std::int32_t head, Side side, std::int64_t k) {
    const auto& arcs = parts_.out(head, side);
    const auto D = static_cast<std::int64_t>(arcs.size());
    Reading& reading = readings_[2 * k + (side == Side::right)];
    for (auto* numbers : {&reading.arcs, &reading.forward, &reading.backward})
        numbers->resize(static_cast<std::size_t>(D));
    const double* const scores = Space::scores(*this);
    const std::int32_t leaf = parts_.leaf(head, side);
    double total = leaf < 0 ? Space::of(0) : scores[leaf];
    for (std::int64_t j = 0; j < D; ++j) {
        const std::int32_t b = arcs[j], first = parts_.siblings(b, 0);
        double sum = scores[first - 1];
        for (std::int64_t i = 0; i < j; ++i)
            sum = Space::add(sum, Space::times(reading.forward[i], scores[first + i]));
        reading.arcs[j] = Space::of(out_[b] + grandparent_score(b, k));
        reading.forward[j] = Space::times(sum, reading.arcs[j]);
        total = Space::add(total, Space::times(reading.forward[j], scores[parts_.stop(b)]));
    }
    for (std::int64_t i = D - 1; i >= 0; --i) {
        double sum = scores[parts_.stop(arcs[i])];
        for (std::int64_t j = i + 1; j < D; ++j)
            sum = Space::add(sum, Space::times(scores[parts_.siblings(arcs[j], i)],
                                               Space::times(reading.arcs[j], reading.backward[j])));
        reading.backward[i] = sum;
    }
    reading.total = total;
}

// Adds the probabilities of the parts on one side, after read_side; `prob` is that of arc number k into the
// head.
template <class Space>
void SpanningSums::add_side(std::int32_t head, Side side, std::int64_t k, double prob) {
    const Reading& reading = readings_[2 * k + (side == Side::right)];
    const auto& arcs = parts_.out(head, side);
    const double* const scores = Space::scores(*this);
    const typename Space::Share share(prob, reading.total);
    if (const std::int32_t leaf = parts_.leaf(head, side); leaf >= 0) beliefs_[leaf] += share(scores[leaf]);
    for (std::int64_t j = 0; j < static_cast<std::int64_t>(arcs.size()); ++j) {
        const std::int32_t b = arcs[j], first = parts_.siblings(b, 0);
        if (reading.arcs[j] == Space::kZero) continue;
        const double after = Space::times(reading.arcs[j], reading.backward[j]);
        const double here = share(Space::times(reading.forward[j], reading.backward[j]));
        beliefs_[b] += here;
        if (const std::int32_t part = head == 0 ? -1 : parts_.grandparent(b, k); part >= 0)
            beliefs_[part] += here;
        beliefs_[parts_.stop(b)] += share(Space::times(reading.forward[j], scores[parts_.stop(b)]));
        beliefs_[first - 1] += share(Space::times(scores[first - 1], after));
        for (std::int64_t i = 0; i < j; ++i)
            beliefs_[first + i] +=
                share(Space::times(reading.forward[i], Space::times(scores[first + i], after)));
    }
}

// All sums of one automaton; false where numbers leave the range of doubles. log_readings_[k]: where the head
// hangs on arc number k.
template <class Space>
bool SpanningSums::read_sides(std::int32_t head, std::int32_t n_into) {
    if (readings_.size() < 2 * static_cast<std::size_t>(n_into))
        readings_.resize(2 * static_cast<std::size_t>(n_into));
    log_readings_.assign(n_into, 0.0);
    for (std::int32_t k = 0; k < n_into; ++k)
        for (const Side side : {Side::left, Side::right}) {
            if (head == 0 && side == Side::left) continue;
            read_side<Space>(head, side, k);
            const double total = readings_[2 * k + (side == Side::right)].total;
            if (!Space::is_usable(total)) return false;
            log_readings_[k] += Space::log_of(total);
        }
    return true;
}

// Where one word hangs on the root, its siblings are features of its arc; that it is one the tree factor
// knows.
double SpanningSums::read_only_root() {
    double value = 0;
    for (const std::int32_t b : parts_.out(0, Side::right)) {
        if (out_[b] == kNever) continue;
        const std::int32_t first = parts_.siblings(b, -1), stop = parts_.stop(b);
        const double score = scores_[first] + scores_[stop], log_sum = log_add(0, out_[b] + score);
        const double prob = std::exp(out_[b] + score - log_sum);
        for (const std::int32_t part : {b, first, stop}) beliefs_[part] = prob;
        value += log_sum - prob * out_[b];
        move(up_[b], std::clamp(score, -kMostMessage, kMostMessage));
    }
    return value;
}

// Sums over what one automaton reads; new messages to its arcs. Returns log Z of the factor, less the
// expected scores of the arcs that it was given.
double SpanningSums::read_head(std::int32_t head) {
    if (!parts_.may_repeat(head)) return read_only_root();
    const std::int32_t first = parts_.first_into(head), n_into = head == 0 ? 1 : parts_.n_into(head);
    const bool plain = read_sides<PlainSpace>(head, n_into);
    if (!plain) read_sides<LogSpace>(head, n_into);
    double log_z = kNever, top = kNever;
    for (std::int32_t k = 0; k < n_into; ++k) {
        log_z = log_add(log_z, log_readings_[k] + (head == 0 ? 0.0 : in_[first + k]));
        top = std::max(top, log_readings_[k]);
    }
    double expected = 0;
    for (std::int32_t k = 0; k < n_into; ++k) {
        const double open = head == 0 ? 0.0 : in_[first + k];
        if (open == kNever || log_readings_[k] == kNever) continue;
        const double prob = std::exp(log_readings_[k] + open - log_z);
        expected += prob * open;
        for (const Side side : {Side::left, Side::right}) {
            if ((head == 0 && side == Side::left) || prob < kLeast) continue;
            plain ? add_side<PlainSpace>(head, side, k, prob) : add_side<LogSpace>(head, side, k, prob);
        }
    }
    for (std::int32_t k = 0; head != 0 && k < n_into; ++k)
        move(down_[first + k], std::max(log_readings_[k] - top, -kMostMessage));
    for (const Side side : {Side::left, Side::right})
        for (const std::int32_t b : parts_.out(head, side)) {
            if (out_[b] == kNever) continue;
            expected += beliefs_[b] * out_[b];
            move(up_[b], std::clamp(log_odds(beliefs_[b]) - out_[b], -kMostMessage, kMostMessage));
        }
    return log_z - expected;
}

// Scores of arcs for the automata.
void SpanningSums::read_arcs() {
    for (std::int64_t a = 0; a < parts_.n_arcs(); ++a) {
        const bool absent = scores_[a] == kNever;
        in_[a] = absent ? kNever : std::log(std::max(probs_[a], kLeast)) - down_[a];
        out_[a] = absent ? kNever : log_odds(probs_[a]) - up_[a];
    }
}

// What factors count twice, and the messages among the scores of the tree factor:
//   Σ p (up + down) + Σ_m H(head of m) + Σ_b H(b against the other heads of its dependent).
double SpanningSums::bethe_entropies() const {
    double sum = 0;
    for (std::int64_t a = 0; a < parts_.n_arcs(); ++a)
        if (probs_[a] > 0)
            sum += probs_[a] * (up_[a] + down_[a]) + 2 * entropy_of(probs_[a]) + entropy_of(1 - probs_[a]);
    return sum;
}

// Bethe's log Z = log Z of the trees + Σ_h (log Z of automaton h − expected scores of its arcs) − what counts
// twice.
double SpanningSums::marginals(std::int64_t R, const double* scores, double* probs) {
    const std::int64_t A = parts_.n_arcs(), P = parts_.n_parts();
    scores_.resize(P);
    labels_.sum(A, R, scores, scores_.data(), probs);
    std::copy_n(scores + A * R, P - A, scores_.data() + A);
    exponentials_.resize(P);
    for (std::int64_t part = A; part < P; ++part) exponentials_[part] = std::exp(scores_[part]);
    for (Buffer<double>* buffer : {&up_, &down_}) buffer->assign(A, 0.0);
    for (Buffer<double>* buffer : {&probs_, &in_, &out_, &moved_}) buffer->resize(A);
    double log_z = 0, change = 1;
    sum_trees();
    for (int round = 0; round < kMostRounds && change >= kClose; ++round) {
        read_arcs();
        log_z = log_trees_ - bethe_entropies();
        beliefs_.assign(P, 0.0);
        for (std::int32_t head = 0; head <= parts_.n_words(); ++head) log_z += read_head(head);
        std::copy_n(probs_.data(), A, moved_.data());
        sum_trees();
        change = 0;
        for (std::int64_t a = 0; a < A; ++a) change = std::max(change, std::abs(probs_[a] - moved_[a]));
    }
    for (std::int64_t arc = 0; arc < A; ++arc)
        for (std::int64_t r = 0; r < R; ++r) probs[arc * R + r] *= probs_[arc];
    std::copy_n(beliefs_.data() + A, P - A, probs + A * R);
    return log_z;
}

// Central differences of the beliefs.
void SpanningSums::hessian_vector(std::int64_t R, const double* scores, const double* direction,
                                  double* out) {
    const std::int64_t size = parts_.n_scores(R);
    double largest = 0;
    for (std::int64_t i = 0; i < size; ++i) largest = std::max(largest, std::abs(direction[i]));
    if (largest == 0) {
        std::fill_n(out, size, 0.0);
        return;
    }
    const double step = 1e-4 / largest;
    for (Buffer<double>* buffer : {&shifted_, &more_, &less_}) buffer->resize(size);
    for (const double sign : {1.0, -1.0}) {
        for (std::int64_t i = 0; i < size; ++i) shifted_[i] = scores[i] + sign * step * direction[i];
        marginals(R, shifted_.data(), sign > 0 ? more_.data() : less_.data());
    }
    for (std::int64_t i = 0; i < size; ++i) out[i] = (more_[i] - less_[i]) / (2 * step);
}

// Scores [n + 1, n + 1, R] of arcs, −inf for those that are no candidates.
TreeView SpanningSums::dense(std::int64_t R, const double* arcs, bool logarithms) {
    const std::int64_t n = parts_.n_words();
    dense_.assign((n + 1) * (n + 1) * R, kNever);
    for (std::int64_t a = 0; a < parts_.n_arcs(); ++a) {
        const Arc arc = parts_.arcs()[a];
        double* row = dense_.data() + (arc.head * (n + 1) + arc.dependent) * R;
        for (std::int64_t r = 0; r < R; ++r)
            row[r] = logarithms ? std::log(std::max(arcs[a * R + r], kLeast)) : arcs[a * R + r];
    }
    return {n, R, dense_.data(), one_root_};
}

// A tree has the best label of each of its arcs: others need not be kept.
ScoredTree SpanningSums::minimum_risk(std::int64_t R, const double* probs) {
    moved_.resize(parts_.n_arcs());
    for (std::int64_t a = 0; a < parts_.n_arcs(); ++a)
        moved_[a] = probs[a * R + tree_kernels().largest(probs + a * R, R)];
    ScoredTree found = best_tree(dense(1, moved_.data()));
    const std::vector<std::int32_t> arcs = parts_.arcs_of(found.heads);
    for (std::size_t i = 0; i < arcs.size(); ++i)
        found.labels[i] = static_cast<std::int32_t>(tree_kernels().largest(probs + arcs[i] * R, R));
    return found;
}

// Hill climbing: from the tree of minimum risk, the head of one word after the other is changed while that
// raises the score. No tree that differs in one head only is better. Leaves the scores of the best labels in
// scores_, and the messages of belief propagation.
std::vector<std::int32_t> SpanningSums::climb(std::int64_t R, const double* scores) {
    expected_.resize(parts_.n_scores(R));
    marginals(R, scores, expected_.data());
    const ScoredTree start = minimum_risk(R, expected_.data());
    const std::int64_t A = parts_.n_arcs();
    for (std::int64_t a = 0; a < A; ++a)
        scores_[a] = scores[a * R + tree_kernels().largest(scores + a * R, R)];
    std::vector<std::int32_t> tree = parts_.arcs_of(start.heads);
    double score = parts_.score(scores_.data(), tree);
    for (bool better = true; better;) {
        better = false;
        for (std::int32_t m = 1; m <= parts_.n_words(); ++m)
            for (std::int32_t a = parts_.first_into(m); a < parts_.first_into(m) + parts_.n_into(m); ++a) {
                const std::int32_t before = tree[m - 1];
                if (a == before || scores_[a] == kNever) continue;
                tree[m - 1] = a;
                const double now = is_tree(tree) ? parts_.score(scores_.data(), tree) : kNever;
                if (now > score + 1e-9) {
                    score = now;
                    better = true;
                } else {
                    tree[m - 1] = before;
                }
            }
    }
    return tree;
}

// The tree of these arcs with its best labels.
ScoredTree SpanningSums::labelled(const std::vector<std::int32_t>& tree, std::int64_t R,
                                  const double* scores) const {
    ScoredTree found{parts_.score(scores_.data(), tree), {}, {}};
    for (const std::int32_t a : tree) {
        found.heads.push_back(parts_.arcs()[a].head);
        found.labels.push_back(static_cast<std::int32_t>(tree_kernels().largest(scores + a * R, R)));
    }
    return found;
}

ScoredTree SpanningSums::best(std::int64_t R, const double* scores) {
    return labelled(climb(R, scores), R, scores);
}

BoundedTree SpanningSums::bounded_best(std::int64_t R, const double* scores, std::int64_t most_iterations) {
    const std::vector<std::int32_t> start = climb(R, scores);
    const TreeDual::Found found =
        TreeDual(parts_, scores_.data(), one_root_).search(start, up_.data(), down_.data(), most_iterations);
    return {labelled(found.tree, R, scores), found.bound, found.n_iterations};
}

bool SpanningSums::is_tree(const std::vector<std::int32_t>& tree) const {
    const auto head = [&](std::int32_t word) { return parts_.arcs()[tree[word - 1]].head; };
    std::int64_t n_roots = 0;
    for (std::int32_t m = 1; m <= parts_.n_words(); ++m) {
        n_roots += head(m) == 0;
        std::int64_t steps = 0;
        for (std::int32_t above = m; above != 0; above = head(above))
            if (++steps > parts_.n_words()) return false;
    }
    return !one_root_ || n_roots == 1;
}

// The best, and the k − 1 best others by the product of the probabilities of their labelled arcs, in the
// order of their scores.
std::vector<ScoredTree> SpanningSums::k_best(std::int64_t R, const double* scores, std::int64_t k) {
    const ScoredTree best = bounded_best(R, scores, kMostIterations).tree;  // leaves the beliefs in expected_
    std::vector<ScoredTree> found = k_best_trees(dense(R, expected_.data(), true), k);
    if (std::find(found.begin(), found.end(), best) == found.end() && !found.empty()) found.back() = best;
    std::fill_n(scores_.data(), parts_.n_arcs(), 0.0);
    for (ScoredTree& tree : found) {
        const std::vector<std::int32_t> arcs = parts_.arcs_of(tree.heads);
        tree.score = parts_.score(scores_.data(), arcs);
        for (std::size_t i = 0; i < arcs.size(); ++i) tree.score += scores[arcs[i] * R + tree.labels[i]];
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const ScoredTree& a, const ScoredTree& b) { return a.score > b.score; });
    return found;
}

}  // namespace

std::unique_ptr<SecondOrderSums> spanning_sums(bool one_root) {
    return std::make_unique<SpanningSums>(one_root);
}

}  // namespace crfkit
