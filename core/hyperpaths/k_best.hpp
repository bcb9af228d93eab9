// The hyperpaths of a graph (graph.hpp) with the highest scores, one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/interruption.hpp"
#include "hyperpaths/graph.hpp"
#include "hyperpaths/viterbi.hpp"

namespace crfkit {

// Lazy enumeration (Huang & Chiang 2005, algorithm 3): every node keeps its hyperpaths in order, and finds
// its next one only when asked. A hyperpath of a node is an edge into it with a rank for each tail: which of
// the tail's hyperpaths it uses. The first candidates of a node are its edges with the best hyperpaths of
// their tails; when (edge, l, r) has been taken, (edge, l, r + 1) becomes a candidate, and (edge, l + 1, 0)
// if r = 0, so that each pair of ranks becomes one once. After Viterbi, O(edges), a further hyperpath costs
// O(nodes of a hyperpath · log), and O(edges into it) for each node that it visits for the first time.
//
// All hyperpaths are distinct. Ties: the lower edge, at the goal first.
template <HyperpathGraph Graph>
class KBestHyperpaths {
  public:
    // `graph` must outlive it.
    explicit KBestHyperpaths(const Graph& graph) : graph_(graph), nodes_(graph.n_nodes()) {
        possible_ = viterbi(graph, workspace_, [](auto, auto) {}) > kAbsent;
    }

    // Goes on to the next best hyperpath; false when there is none.
    bool next() {
        check_interruption();
        if (!possible_ || !find(graph_.n_nodes() - 1, rank_ + 1)) return false;
        ++rank_;
        return true;
    }
    // Of the hyperpath at hand.
    double score() const { return nodes_.back()->found[rank_].score; }
    // Calls visit(node, number of the edge) along the hyperpath at hand, heads before tails, left before
    // right.
    template <class Visit>
    void each(const Visit& visit);

  private:
    static constexpr double kAbsent = -std::numeric_limits<double>::infinity();

    // By edge `edge` into the node, with the hyperpaths of its tails number `left` and `right`.
    struct Hyperpath {
        double score;
        std::int64_t edge;
        std::int32_t left, right;
        // For heaps: the highest score on top, then the lowest edge and ranks.
        bool operator<(const Hyperpath& other) const {
            if (score != other.score) return score < other.score;
            if (edge != other.edge) return edge > other.edge;
            return left != other.left ? left > other.left : right > other.right;
        }
    };
    struct Node {
        std::vector<Hyperpath> found;       // in order, best first
        std::vector<Hyperpath> candidates;  // heap
        std::vector<Hyperpath> pending;     // successors of the last one found, without a score yet
    };
    struct Request {
        std::int64_t node;
        std::int32_t rank;
    };

    bool find(std::int64_t node, std::int32_t rank);
    bool score_pending(Node& node, std::int64_t number);
    Node& open(std::int64_t number);
    static void take_best(Node& node);
    // Whether hyperpath `rank` of a tail is known, and its score; the one hyperpath of no tail scores 0.
    bool is_found(std::int64_t tail, std::int32_t rank) {
        return tail < 0 ? rank == 0 : static_cast<std::size_t>(rank) < open(tail).found.size();
    }
    bool is_exhausted(std::int64_t tail) {
        return tail < 0 || (open(tail).candidates.empty() && open(tail).pending.empty());
    }
    double score_of(std::int64_t tail, std::int32_t rank) {
        return tail < 0 ? 0.0 : open(tail).found[rank].score;
    }

    const Graph& graph_;
    ViterbiWorkspace workspace_;  // best [1 + nodes]: the best score of each node
    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<Request> asked_;
    std::int32_t rank_ = -1;  // of the hyperpath at hand
    bool possible_ = false;
};

// A node that some hyperpath visits, with its best one.
template <HyperpathGraph Graph>
typename KBestHyperpaths<Graph>::Node& KBestHyperpaths<Graph>::open(std::int64_t number) {
    std::unique_ptr<Node>& slot = nodes_[number];
    if (slot) return *slot;
    slot = std::make_unique<Node>();
    const double* const best = workspace_.best.data() + 1;
    const auto edges = graph_.into(number);
    for (std::int64_t k = 0; k < edges.n; ++k)
        if (const double score = edges.score(k) + best[edges.left(k)] + best[edges.right(k)]; score > kAbsent)
            slot->candidates.push_back({score, k, 0, 0});
    std::make_heap(slot->candidates.begin(), slot->candidates.end());
    take_best(*slot);
    return *slot;
}

template <HyperpathGraph Graph>
void KBestHyperpaths<Graph>::take_best(Node& node) {
    std::pop_heap(node.candidates.begin(), node.candidates.end());
    const Hyperpath taken = node.candidates.back();
    node.candidates.pop_back();
    node.found.push_back(taken);
    node.pending.push_back({0, taken.edge, taken.left, taken.right + 1});
    if (taken.right == 0) node.pending.push_back({0, taken.edge, taken.left + 1, 0});
}

// Finds hyperpath `rank` of a node; false when it has no more than `rank`. Without recursion: hyperpaths of
// long sentences are deep.
template <HyperpathGraph Graph>
bool KBestHyperpaths<Graph>::find(std::int64_t node, std::int32_t rank) {
    asked_.assign(1, {node, rank});
    Pace pace;
    while (!asked_.empty()) {
        pace.work(64);
        const Request request = asked_.back();
        Node& asked = open(request.node);
        if (is_found(request.node, request.rank) || is_exhausted(request.node))
            asked_.pop_back();
        else if (score_pending(asked, request.node) && !asked.candidates.empty())
            take_best(asked);
    }
    return is_found(node, rank);
}

// Gives the pending hyperpaths of a node their scores. Where one needs a hyperpath of a tail that is not
// known yet, asks for that first, and returns false; where there is no such hyperpath, drops it.
template <HyperpathGraph Graph>
bool KBestHyperpaths<Graph>::score_pending(Node& node, std::int64_t number) {
    const auto edges = graph_.into(number);
    while (!node.pending.empty()) {
        Hyperpath path = node.pending.back();
        const std::int64_t left = edges.left(path.edge), right = edges.right(path.edge);
        bool exists = true;
        for (const Request tail : {Request{left, path.left}, Request{right, path.right}}) {
            if (is_found(tail.node, tail.rank)) continue;
            exists = false;
            if (is_exhausted(tail.node)) continue;
            asked_.push_back(tail);
            return false;
        }
        node.pending.pop_back();
        if (!exists) continue;
        path.score = edges.score(path.edge) + score_of(left, path.left) + score_of(right, path.right);
        node.candidates.push_back(path);
        std::push_heap(node.candidates.begin(), node.candidates.end());
    }
    return true;
}

template <HyperpathGraph Graph>
template <class Visit>
void KBestHyperpaths<Graph>::each(const Visit& visit) {
    asked_.assign(1, {graph_.n_nodes() - 1, rank_});
    while (!asked_.empty()) {
        const Request request = asked_.back();
        asked_.pop_back();
        const Hyperpath path = open(request.node).found[request.rank];
        const auto edges = graph_.into(request.node);
        visit(request.node, static_cast<std::int64_t>(edges.number(path.edge)));
        if (edges.right(path.edge) >= 0) asked_.push_back({edges.right(path.edge), path.right});
        if (edges.left(path.edge) >= 0) asked_.push_back({edges.left(path.edge), path.left});
    }
}

}  // namespace crfkit
