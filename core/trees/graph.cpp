#include "trees/graph.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace crfkit {
namespace {

bool all_exist(const double* arcs, std::int64_t n) {
    for (std::int64_t h = 0; h <= n; ++h)
        for (std::int64_t m = 1; m <= n; ++m)
            if (h != m && arcs[h * (n + 1) + m] == kNever) return false;
    return true;
}

// Tarjan's search (1972) for strongly connected components, without recursion: low(v) is the lowest order of
// a word on the path that v's descendants lead back to, and v is the first word of a component where low(v) =
// order(v). Components are numbered so that arcs lead from higher to lower numbers.
class Components {
  public:
    Components(const double* arcs, std::int64_t n)
        : n_(n), arcs_(arcs), order_(n + 1, 0), low_(n + 1, 0), next_(n + 1, 1), component(n + 1, -1) {
        for (std::int64_t word = 1; word <= n; ++word)
            if (!order_[word]) search(word);
    }

  private:
    void search(std::int64_t start) {
        enter(start);
        while (!path_.empty()) {
            const std::int64_t word = path_.back();
            std::int64_t& to = next_[word];
            while (to <= n_ && (to == word || arcs_[word * (n_ + 1) + to] == kNever)) ++to;
            if (to > n_) {
                leave(word);
            } else if (!order_[to]) {
                enter(to);
            } else {
                if (component[to] < 0) low_[word] = std::min(low_[word], order_[to]);
                ++to;
            }
        }
    }

    void enter(std::int64_t word) {
        order_[word] = low_[word] = ++n_seen_;
        open_.push_back(word);
        path_.push_back(word);
    }

    void leave(std::int64_t word) {
        path_.pop_back();
        if (!path_.empty()) low_[path_.back()] = std::min(low_[path_.back()], low_[word]);
        if (low_[word] != order_[word]) return;
        std::int64_t last;
        do {
            last = open_.back();
            open_.pop_back();
            component[last] = n_components;
        } while (last != word);
        ++n_components;
    }

    std::int64_t n_, n_seen_ = 0;
    const double* arcs_;
    std::vector<std::int64_t> order_, low_, next_, open_, path_;

  public:
    std::vector<std::int64_t> component;  // [n + 1] of each word
    std::int64_t n_components = 0;
};

// The parts whose words have no head among the words of other parts need the root.
std::vector<bool> needs_root(const Components& found, const double* arcs, std::int64_t n) {
    std::vector<bool> needs(found.n_components, true);
    for (std::int64_t h = 1; h <= n; ++h)
        for (std::int64_t m = 1; m <= n; ++m)
            if (arcs[h * (n + 1) + m] > kNever && found.component[h] != found.component[m])
                needs[found.component[m]] = false;
    return needs;
}

// Whether differences of the scores of arcs into one word are far, or where they are sums, the scores
// themselves: such a sum is rounded.
bool are_far(const ArcSums& arcs, std::int64_t side, bool summed) {
    bool far = false;
    for (std::int64_t m = 1; m < side; ++m) {
        double high = kNever, low = -kNever;
        for (std::int64_t h = 0; h < side; ++h) {
            const double score = arcs.scores[h * side + m];
            if (is_unusable(score)) return false;
            if (score == kNever) continue;
            high = std::max(high, score);
            low = std::min(low, score);
            far |= summed && std::abs(score) >= kFarScore;
        }
        far |= high - low >= kFarScore;
    }
    return far;
}

bool root_leads_into(const TreePart& part, const double* arcs) {
    return std::any_of(part.words.begin(), part.words.end(), [&](auto word) { return arcs[word] > kNever; });
}

}  // namespace

void refuse_unreached(std::int64_t word, bool has_heads) {
    throw NoTree("no tree exists: word " + std::to_string(word) +
                 (has_heads ? " cannot be reached from the root." : " has no possible head."));
}

void refuse_two_roots(std::int64_t word, std::int64_t other) {
    throw NoTree("no tree with a single root exists: words " + std::to_string(std::min(word, other)) +
                 " and " + std::to_string(std::max(word, other)) +
                 " cannot be reached from each other or a third word.");
}

// A strongly connected component never has a cycle with another one, so that any choice of trees within the
// components is a tree: Z = Π Z(part). With one root, the only part that no other leads into takes it.
std::vector<TreePart> parts_of(const double* arcs, std::int64_t n, bool one_root) {
    if (n == 0) return {};
    if (all_exist(arcs, n)) {
        TreePart whole{{}, one_root, true};
        for (std::int64_t word = 1; word <= n; ++word) whole.words.push_back(static_cast<std::int32_t>(word));
        return {whole};
    }
    const Components found(arcs, n);
    const std::vector<bool> needs = needs_root(found, arcs, n);
    std::vector<TreePart> parts(found.n_components);
    for (std::int64_t word = 1; word <= n; ++word)
        parts[found.component[word]].words.push_back(static_cast<std::int32_t>(word));
    std::int64_t with_root = -1;
    for (std::int64_t c = 0; c < found.n_components; ++c) {
        parts[c].one_root = one_root && needs[c];
        parts[c].root_is_head = !one_root || needs[c];
        if (!needs[c]) continue;
        if (!root_leads_into(parts[c], arcs))
            refuse_unreached(parts[c].words.front(), parts[c].words.size() > 1);
        if (one_root && with_root >= 0)
            refuse_two_roots(parts[with_root].words.front(), parts[c].words.front());
        with_root = c;
    }
    return parts;
}

ArcSums summed_arcs(const TreeView& tree) {
    const std::int64_t side = tree.side(), R = tree.n_labels;
    const auto size = static_cast<std::size_t>(side * side);
    ArcSums arcs{std::vector<double>(size, kNever), {}, {}};
    if (R > 1) {
        arcs.tops.assign(size, kNever);
        arcs.sums.assign(size, 0.0);
    }
    // score(h → m) = log Σ_r exp(score_r), by log-sum-exp: top + log Σ_r exp(score_r − top)
    for (std::int64_t h = 0; h < side; ++h)
        for (std::int64_t m = 1; m < side; ++m) {
            if (h == m) continue;
            const double* labels = tree.labels(h, m);
            const std::int64_t arc = h * side + m;
            arcs.scores[arc] = labels[0];
            if (R == 1) continue;
            const double top = arcs.tops[arc] = *std::max_element(labels, labels + R);
            double& sum = arcs.sums[arc];
            if (top != kNever)
                for (std::int64_t r = 0; r < R; ++r) sum += std::exp(labels[r] - top);
            arcs.scores[arc] = top != kNever ? top + std::log(sum) : top;
        }
    arcs.far = are_far(arcs, side, R > 1);
    return arcs;
}

}  // namespace crfkit
