#include "answers/k_best.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "base/interruption.hpp"

namespace crfkit {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// What the enumeration asks of its paths: nodes position by position, in the order of their labels, and the
// ways into each. A way into a node scores its arc and the node itself.
struct ChainGraph {
    const ChainView& chain;

    std::int64_t n_positions() const { return chain.n_positions; }
    std::int64_t first_node(std::int64_t t) const { return t * chain.n_labels; }
    std::int32_t label(std::int64_t node) const { return static_cast<std::int32_t>(node % chain.n_labels); }
    double first_score(std::int64_t node) const { return chain.states[node]; }
    template <class Function>
    void each_way(std::int64_t t, std::int64_t node, const Function& way) const {
        const std::int32_t L = chain.n_labels;
        const double* arcs = chain.arcs_into(t) + node % L;
        for (std::int32_t a = 0; a < L; ++a)
            way(first_node(t - 1) + a, arcs[static_cast<std::int64_t>(a) * L] + chain.states[node]);
    }
};

struct LatticeGraph {
    const Lattice& lattice;
    const ArcScores& arcs;
    std::span<const double> scores;

    std::int64_t n_positions() const { return lattice.n_positions(); }
    std::int64_t first_node(std::int64_t t) const { return lattice.position_ptr[t]; }
    std::int32_t label(std::int64_t node) const { return lattice.labels[node]; }
    double first_score(std::int64_t node) const { return scores[node]; }
    template <class Function>
    void each_way(std::int64_t, std::int64_t node, const Function& way) const {
        for (std::int64_t e = lattice.in_ptr[node]; e < lattice.in_ptr[node + 1]; ++e)
            way(lattice.from[e], (lattice.arc[e] >= 0 ? arcs.scores[lattice.arc[e]] : 0.0) + scores[node]);
    }
};

class TrellisGraph {
  public:
    explicit TrellisGraph(const ScoredTrellis& trellis) : trellis_(trellis), first_node_{0} {
        for (std::int64_t t = 0; t < n_positions(); ++t)
            first_node_.push_back(first_node_.back() + trellis.step(t).n_after);
    }

    std::int64_t n_positions() const { return trellis_.n_positions(); }
    std::int64_t first_node(std::int64_t t) const { return first_node_[t]; }
    std::int32_t label(std::int64_t node) const {
        const auto after = std::upper_bound(first_node_.begin(), first_node_.end(), node);
        return label_at(after - first_node_.begin() - 1, node);
    }
    double first_score(std::int64_t node) const {  // each has one arc from the source
        return trellis_.arcs.scores(0, trellis_.steps[0])[node] + node_score(0, node);
    }
    template <class Function>
    void each_way(std::int64_t t, std::int64_t node, const Function& way) const {
        const Step& step = trellis_.step(t);
        const auto j = static_cast<std::int32_t>(step.n_pools + node - first_node_[t]);
        each_source(t, step, j, node_score(t, node), way);
    }

  private:
    std::int32_t label_at(std::int64_t t, std::int64_t node) const {
        return trellis_.table.labels(trellis_.step(t).after)[node - first_node_[t]];
    }
    // The score of the label, and of the arc into the sink after the last position.
    double node_score(std::int64_t t, std::int64_t node) const {
        double score = trellis_.position(t)[label_at(t, node)];
        if (t + 1 == n_positions())
            score += trellis_.arcs.scores(t + 1, trellis_.steps[t + 1])[node - first_node_[t]];
        return score;
    }
    template <class Function>
    void each_source(std::int64_t t, const Step& step, std::int32_t j, double score,
                     const Function& way) const {
        const StepTable& table = trellis_.table;
        const double* scores = trellis_.arcs.scores(t, trellis_.steps[t]);
        for (std::int32_t e = table.in_ptr[step.first_in + j]; e < table.in_ptr[step.first_in + j + 1]; ++e) {
            const std::int32_t source = table.source[step.first_arc + e];
            if (source < step.n_before)
                way(first_node_[t - 1] + source, score + scores[e]);
            else
                each_source(t, step, source - step.n_before, score + scores[e], way);
        }
    }

    const ScoredTrellis& trellis_;
    std::vector<std::int64_t> first_node_;  // [T + 1]
};

// One way to reach a node: from node `before`, by that node's path number `rank`; `step` is what it adds.
struct Path {
    double score, step;
    std::int64_t before, rank;
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

// The end is one more node, at position T. Scores are kept relative to `peaks_`, the best score at each
// position, so that long chains lose no digits.
template <class Graph>
class Enumeration {
  public:
    explicit Enumeration(const Graph& graph)
        : graph_(graph),
          n_nodes_(graph.first_node(graph.n_positions())),
          first_(n_nodes_),
          peaks_(graph.n_positions()),
          nodes_(n_nodes_ + 1) {
        Pace pace;
        for (std::int64_t t = 0; t < graph.n_positions(); ++t) {
            double peak = kNever;
            const std::int64_t begin = graph.first_node(t), end = graph.first_node(t + 1);
            for (std::int64_t j = begin; j < end; ++j) {
                pace.work(4 * (begin - graph.first_node(std::max<std::int64_t>(t - 1, 0))) + 4);
                first_[j] = t > 0 ? kNever : graph.first_score(j);
                if (t > 0)
                    graph.each_way(t, j, [&](std::int64_t before, double step) {
                        first_[j] = std::max(first_[j], first_[before] + step);
                    });
                peak = std::max(peak, first_[j]);
            }
            possible_ = possible_ && peak > kNever;
            if (!possible_) return;
            for (std::int64_t j = begin; j < end; ++j) first_[j] -= peak;
            peaks_[t] = peak;
            total_ += peak;
        }
    }

    bool possible() const { return possible_; }

    // Finds the next path into the end; false when there is none.
    bool next() {
        // Going down: to which node must a successor be asked for first?
        std::vector<std::pair<std::int64_t, std::int64_t>> asked;  // position, node
        std::int64_t t = graph_.n_positions(), j = n_nodes_;
        check_interruption();
        for (;;) {
            const Node& node = open(t, j);
            asked.emplace_back(t, j);
            if (t == 0) break;
            const Path& last = node.found.back();
            const Node& source = open(t - 1, last.before);
            if (static_cast<std::int64_t>(source.found.size()) > last.rank + 1) break;
            --t;
            j = last.before;
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
                    add(node, last.before, last.rank + 1, source.found[last.rank + 1].score, last.step);
            }
            grew = !node.candidates.empty();
            if (grew) take_best(node);
        }
        return grew;
    }

    ScoredLabels path(std::int64_t rank) {
        ScoredLabels out{0, std::vector<std::int32_t>(graph_.n_positions())};
        const Path* path = &open(graph_.n_positions(), n_nodes_).found[rank];
        out.score = total_ + path->score;
        for (std::int64_t t = graph_.n_positions() - 1; t >= 0; --t) {
            out.labels[t] = graph_.label(path->before);
            path = &open(t, path->before).found[path->rank];
        }
        return out;
    }

  private:
    void add(Node& node, std::int64_t before, std::int64_t rank, double score, double step) {
        if (score + step == kNever) return;
        node.candidates.push_back({score + step, step, before, rank});
        std::push_heap(node.candidates.begin(), node.candidates.end());
    }

    void take_best(Node& node) {
        std::pop_heap(node.candidates.begin(), node.candidates.end());
        node.found.push_back(node.candidates.back());
        node.candidates.pop_back();
    }

    Node& open(std::int64_t t, std::int64_t j) {
        std::unique_ptr<Node>& slot = nodes_[j];
        if (slot) return *slot;
        slot = std::make_unique<Node>();
        Node& node = *slot;
        if (t == 0) {
            node.found.push_back({first_[j], 0, -1, 0});
            return node;
        }
        if (t == graph_.n_positions()) {
            for (std::int64_t i = graph_.first_node(t - 1); i < n_nodes_; ++i) add(node, i, 0, first_[i], 0);
        } else {
            graph_.each_way(t, j, [&](std::int64_t before, double step) {
                add(node, before, 0, first_[before], step - peaks_[t]);
            });
        }
        take_best(node);
        return node;
    }

    const Graph& graph_;
    std::int64_t n_nodes_;
    std::vector<double> first_;  // [nodes] best score at each node, relative to the peak of its position
    std::vector<double> peaks_;  // [T]
    std::vector<std::unique_ptr<Node>> nodes_;
    double total_ = 0;
    bool possible_ = true;
};

template <class Graph>
std::vector<ScoredLabels> k_best_paths(const Graph& graph, std::int64_t k) {
    std::vector<ScoredLabels> out;
    if (k < 1) return out;
    if (graph.n_positions() == 0) return {ScoredLabels{0, {}}};
    Enumeration<Graph> paths(graph);
    if (!paths.possible()) return out;
    out.push_back(paths.path(0));
    while (static_cast<std::int64_t>(out.size()) < k && paths.next())
        out.push_back(paths.path(static_cast<std::int64_t>(out.size())));
    return out;
}

}  // namespace

std::vector<ScoredLabels> k_best(const ChainView& chain, std::int64_t k) {
    return k_best_paths(ChainGraph{chain}, k);
}

std::vector<ScoredLabels> k_best(const Lattice& lattice, const ArcScores& arcs,
                                 std::span<const double> scores, std::int64_t k) {
    return k_best_paths(LatticeGraph{lattice, arcs, scores}, k);
}

std::vector<ScoredLabels> k_best(const ScoredTrellis& trellis, std::int64_t k) {
    return k_best_paths(TrellisGraph(trellis), k);
}

}  // namespace crfkit
