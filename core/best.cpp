#include "best.hpp"

#include <algorithm>
#include <limits>
#include <memory>

namespace crfkit {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// One way to reach a node: through label `before` of the site before, by that node's path number `rank`.
struct Path {
    double score;
    std::int32_t before;
    std::int64_t rank;
    // For heaps: the largest score on top, then the lowest label and rank.
    bool operator<(const Path& other) const {
        if (score != other.score) return score < other.score;
        if (before != other.before) return before > other.before;
        return rank > other.rank;
    }
};

struct Node {
    std::vector<Path> found;       // in order, best first
    std::vector<Path> candidates;  // heap
};

// Node (t, b) for t < T is label b at site t; node (T, 0) is the end. Scores are kept relative to `peaks_`,
// the best score at each site, so that long chains lose no digits.
class Enumeration {
  public:
    explicit Enumeration(const ChainView& chain)
        : chain_(chain),
          first_(chain.n_sites * chain.n_labels),
          peaks_(chain.n_sites),
          nodes_(chain.n_sites * chain.n_labels + 1) {
        const std::int32_t L = chain.n_labels;
        for (std::int64_t t = 0; t < chain.n_sites; ++t) {
            double* row = &first_[t * L];
            for (std::int32_t b = 0; b < L; ++b) {
                row[b] = t > 0 ? kNever : chain.state(t)[b];
                for (std::int32_t a = 0; t > 0 && a < L; ++a)
                    row[b] = std::max(row[b], through(t, b, a, first_[(t - 1) * L + a]));
            }
            const double peak = *std::max_element(row, row + L);
            possible_ = possible_ && peak > kNever;
            if (!possible_) return;
            for (std::int32_t b = 0; b < L; ++b) row[b] -= peak;
            peaks_[t] = peak;
            total_ += peak;
        }
    }

    bool possible() const { return possible_; }

    // Finds the next path into the end; false when there is none.
    bool next() {
        // Going down: to which node must a successor be asked for first?
        std::vector<std::pair<std::int64_t, std::int32_t>> asked;
        std::int64_t t = chain_.n_sites;
        std::int32_t b = 0;
        for (;;) {
            Node& node = open(t, b);
            asked.emplace_back(t, b);
            if (t == 0) break;
            const Path& last = node.found.back();
            Node& source = open(t - 1, last.before);
            if (static_cast<std::int64_t>(source.found.size()) > last.rank + 1) break;
            --t;
            b = last.before;
        }
        // Coming up: each node takes its successor's path into its candidates, and the best candidate as its
        // next.
        bool grew = false;
        for (auto it = asked.rbegin(); it != asked.rend(); ++it) {
            Node& node = open(it->first, it->second);
            if (it->first > 0) {
                const Path last = node.found.back();
                const Node& source = open(it->first - 1, last.before);
                if (static_cast<std::int64_t>(source.found.size()) > last.rank + 1)
                    add(node, it->first, it->second, last.before, last.rank + 1,
                        source.found[last.rank + 1].score);
            }
            grew = !node.candidates.empty();
            if (!grew) continue;
            std::pop_heap(node.candidates.begin(), node.candidates.end());
            node.found.push_back(node.candidates.back());
            node.candidates.pop_back();
        }
        return grew;
    }

    ScoredLabels path(std::int64_t rank) {
        ScoredLabels out{0, std::vector<std::int32_t>(chain_.n_sites)};
        const Path* path = &open(chain_.n_sites, 0).found[rank];
        out.score = total_ + path->score;
        for (std::int64_t t = chain_.n_sites - 1; t >= 0; --t) {
            out.labels[t] = path->before;
            path = &open(t, path->before).found[path->rank];
        }
        return out;
    }

  private:
    // The score at (t, b) of a path that has `score` at (t − 1, a), before the peak of site t is subtracted.
    double through(std::int64_t t, std::int32_t b, std::int32_t a, double score) const {
        return t == chain_.n_sites
                   ? score
                   : score + chain_.arcs_into(t)[a * chain_.n_labels + b] + chain_.state(t)[b];
    }

    void add(Node& node, std::int64_t t, std::int32_t b, std::int32_t a, std::int64_t rank, double score) {
        const double value = through(t, b, a, score) - (t == chain_.n_sites ? 0.0 : peaks_[t]);
        if (value == kNever) return;
        node.candidates.push_back({value, a, rank});
        std::push_heap(node.candidates.begin(), node.candidates.end());
    }

    Node& open(std::int64_t t, std::int32_t b) {
        std::unique_ptr<Node>& slot = nodes_[t * chain_.n_labels + b];
        if (slot) return *slot;
        slot = std::make_unique<Node>();
        Node& node = *slot;
        if (t == 0) {
            node.found.push_back({first_[b], -1, 0});
            return node;
        }
        const std::int32_t L = chain_.n_labels;
        for (std::int32_t a = 0; a < L; ++a) add(node, t, b, a, 0, first_[(t - 1) * L + a]);
        std::pop_heap(node.candidates.begin(), node.candidates.end());
        node.found.push_back(node.candidates.back());
        node.candidates.pop_back();
        return node;
    }

    const ChainView& chain_;
    std::vector<double> first_;  // [T, L] best score at each node, relative to the peak of its site
    std::vector<double> peaks_;  // [T]
    std::vector<std::unique_ptr<Node>> nodes_;
    double total_ = 0;
    bool possible_ = true;
};

}  // namespace

std::vector<ScoredLabels> k_best(const ChainView& chain, std::int64_t k) {
    std::vector<ScoredLabels> out;
    if (k < 1) return out;
    if (chain.n_sites == 0) return {ScoredLabels{0, {}}};
    Enumeration paths(chain);
    if (!paths.possible()) return out;
    out.push_back(paths.path(0));
    while (static_cast<std::int64_t>(out.size()) < k && paths.next())
        out.push_back(paths.path(static_cast<std::int64_t>(out.size())));
    return out;
}

}  // namespace crfkit
