// The paths of a graph (graph.hpp) with the highest scores, one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/interruption.hpp"
#include "paths/graph.hpp"
#include "paths/viterbi.hpp"

namespace crfkit {

// Lazy enumeration (Jiménez & Marzal 1999): every node keeps the paths that end there in order, and finds its
// next one only when asked. The r-th path to a node extends some path to the source of one of its arcs, and
//   best_r(j) = r-th highest of  { best_q(src e) + score(e) + score(j) : e into j, q = 1, 2, … },
// where path q + 1 over an arc becomes a candidate when path q was taken. After the first pass, O(arcs), a
// further path costs O(levels · log), and O(arcs into it) for each node that it visits for the first time.
//
// All paths are distinct. Ties: the lower arc, at END first.
template <PathGraph Graph>
class KBestPaths {
  public:
    // `graph` must outlive it.
    explicit KBestPaths(const Graph& graph);

    // Goes on to the next best path; false when there is none.
    bool next();
    // Of the path at hand.
    double score() const { return total_ + nodes_[graph_.end()]->found.back().score; }
    // Calls visit(t, node, arc) along the path at hand, from END to the first node.
    template <class Visit>
    void each(const Visit& visit);

  private:
    // One path to a node: by `arc` from node `source`, with that node's path number `rank`; `step` is
    // what the arc and the node add to its score.
    struct Path {
        double score, step;
        std::int64_t arc, source;
        std::int32_t source_level, rank;
        // For heaps: the highest score on top, then the lowest arc and rank.
        bool operator<(const Path& other) const {
            if (score != other.score) return score < other.score;
            if (arc != other.arc) return arc > other.arc;
            return rank > other.rank;
        }
    };
    struct Node {
        std::vector<Path> found;       // in order, best first
        std::vector<Path> candidates;  // heap
    };
    struct Place {
        std::int64_t level, node;
    };

    void find_best_scores();
    bool find_successor();
    Node& open(const Place& place);
    static void take_best(Node& node);
    const Path* next_of(const Path& path);
    // Σ of the maxima of the levels after `before`, up to `level`.
    double maxima_between(std::int64_t before, std::int64_t level) const {
        double sum = 0;
        for (std::int64_t t = before + 1; t <= level; ++t) sum += maxima_[t];
        return sum;
    }

    const Graph& graph_;
    // Scores at level t are relative to maxima 0 … t: a level's best path scores 0, so that long sequences
    // lose no digits.
    std::vector<double> best_;    // [nodes] the best score of a path to each node
    std::vector<double> maxima_;  // [levels]
    std::vector<std::unique_ptr<Node>> nodes_;
    double total_ = 0;  // Σ of all maxima
    bool started_ = false;
};

template <PathGraph Graph>
KBestPaths<Graph>::KBestPaths(const Graph& graph)
    : graph_(graph), best_(graph.n_nodes()), maxima_(graph.n_levels()), nodes_(graph.n_nodes()) {
    find_best_scores();
}

// As Viterbi, with all scores that are still to be used relative to the maxima of the levels so far.
template <PathGraph Graph>
void KBestPaths<Graph>::find_best_scores() {
    std::vector<double> relative(best_.size());
    Pace pace;
    for (std::int64_t t = 0; t < graph_.n_levels(); ++t) {
        const auto level = graph_.level(t);
        pace.work(4 * level.n_arcs);
        double* const best = relative.data() + level.node_base;
        double maximum = kAbsent;
        for (std::int64_t j = level.first; j < level.last; ++j) {
            best[j] = highest_score(level.into(j), best);
            if (j < level.outer) continue;
            best[j] += level.node_score(j);
            maximum = std::max(maximum, best[j]);
        }
        if (maximum == kAbsent) maximum = 0;  // no path has a node here
        for (std::int64_t j = level.oldest; j < level.last; ++j) best[j] -= maximum;
        std::copy(best + level.first, best + level.last, best_.data() + level.node_base + level.first);
        maxima_[t] = maximum;
        total_ += maximum;
    }
}

template <PathGraph Graph>
bool KBestPaths<Graph>::next() {
    check_interruption();
    if (started_) return find_successor();
    started_ = best_[graph_.end()] > kAbsent;
    if (started_) open({graph_.n_levels() - 1, graph_.end()});
    return started_;
}

template <PathGraph Graph>
bool KBestPaths<Graph>::find_successor() {
    // Going down: the successor of a node's last path needs the next path of its source.
    std::vector<Place> asked{{graph_.n_levels() - 1, graph_.end()}};
    while (asked.back().level >= 0) {
        const Path& last = open(asked.back()).found.back();
        if (next_of(last)) break;
        asked.push_back({last.source_level, last.source});
    }
    // Coming up: that path becomes a candidate, and the best candidate the next path of its node.
    bool grew = false;
    for (auto place = asked.rbegin(); place != asked.rend(); ++place) {
        Node& node = open(*place);
        if (place->level >= 0) {
            Path path = node.found.back();
            if (const Path* source = next_of(path)) {
                ++path.rank;
                path.score = source->score + path.step;
                node.candidates.push_back(path);
                std::push_heap(node.candidates.begin(), node.candidates.end());
            }
        }
        grew = !node.candidates.empty();
        if (grew) take_best(node);
    }
    return grew;
}

// The path of its source that comes after the one that a path extends; null while none is known.
template <PathGraph Graph>
const typename KBestPaths<Graph>::Path* KBestPaths<Graph>::next_of(const Path& path) {
    const Node& source = open({path.source_level, path.source});
    const auto rank = static_cast<std::size_t>(path.rank) + 1;
    return rank < source.found.size() ? &source.found[rank] : nullptr;
}

template <PathGraph Graph>
void KBestPaths<Graph>::take_best(Node& node) {
    std::pop_heap(node.candidates.begin(), node.candidates.end());
    node.found.push_back(node.candidates.back());
    node.candidates.pop_back();
}

// A node that some path passes, with the best path to it.
template <PathGraph Graph>
typename KBestPaths<Graph>::Node& KBestPaths<Graph>::open(const Place& place) {
    std::unique_ptr<Node>& slot = nodes_[place.node];
    if (slot) return *slot;
    slot = std::make_unique<Node>();
    if (place.level < 0) {  // START: one path, without arcs
        slot->found.push_back({});
        return *slot;
    }
    const auto level = graph_.level(place.level);
    const std::int64_t j = place.node - level.node_base;
    const double node_score = j < level.outer ? 0.0 : level.node_score(j);
    const auto arcs = level.into(j);
    slot->candidates.reserve(static_cast<std::size_t>(arcs.n));
    for (std::int64_t k = 0; k < arcs.n; ++k) {
        const std::int64_t source = level.node_base + arcs.source(k), before = level.level_of(arcs.source(k));
        const double step = arcs.score(k) + node_score - maxima_between(before, place.level);
        if (const double score = best_[source] + step; score > kAbsent)
            slot->candidates.push_back(
                {score, step, level.arc_base + arcs.first + k, source, static_cast<std::int32_t>(before), 0});
    }
    std::make_heap(slot->candidates.begin(), slot->candidates.end());
    take_best(*slot);
    return *slot;
}

template <PathGraph Graph>
template <class Visit>
void KBestPaths<Graph>::each(const Visit& visit) {
    const Path* path = &nodes_[graph_.end()]->found.back();
    std::int64_t t = graph_.n_levels() - 1, node = graph_.end();
    while (t >= 0) {
        visit(t, node, path->arc);
        t = path->source_level;
        node = path->source;
        path = &open({t, node}).found[path->rank];
    }
}

}  // namespace crfkit
