// Hypergraphs in arrays, given node by node and edge by edge.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hyperpaths/edge_weights.hpp"
#include "hyperpaths/graph.hpp"

namespace crfkit {

// Built by its caller, for example once a sentence; the memory is reused, so that nothing is allocated once
// it has held the largest graph.
//   graph.clear();
//   for each node, in topological order, the goal last:
//       graph.add_edge(left, right, score) for each edge into it;    // kNoTail: the edge has no such tail
//       node = graph.add_node();
//   graph.weigh();                     // after the last change of scores, before sums are asked for
// The number of an edge is its place in the order of all edges. Numbers of nodes are below 2^31. add_edge and
// add_node check nothing; check() does. Scores may be changed afterwards through scores(), for another
// weigh(), while the edges remain.
class ArrayHypergraph {
  public:
    void clear() {
        edge_ptr_.assign(1, 0);
        tails_.clear();
        scores_.clear();
    }
    void add_edge(std::int64_t left, std::int64_t right, double score) {
        tails_.push_back({static_cast<std::int32_t>(left), static_cast<std::int32_t>(right)});
        scores_.push_back(score);
    }
    // Ends the list of edges into the next node, and returns its number.
    std::int64_t add_node() {
        edge_ptr_.push_back(static_cast<std::int64_t>(scores_.size()));
        return n_nodes() - 1;
    }
    // weight(e) = exp(score(e)), for all edges.
    void weigh() { weights_.set(scores_.data(), n_edges()); }
    // Throws std::invalid_argument for a graph without nodes, and for an edge whose tails do not all come
    // before its head.
    void check() const;

    std::span<double> scores() { return scores_; }  // [edges]; may be changed, then weigh() is due
    std::span<const double> scores() const { return scores_; }
    std::int64_t n_nodes() const { return static_cast<std::int64_t>(edge_ptr_.size()) - 1; }
    std::int64_t n_edges() const { return static_cast<std::int64_t>(scores_.size()); }

    struct Tails {
        std::int32_t left, right;
    };
    struct Edges {
        std::int64_t n, first;
        const Tails* tails;
        const double* scores;
        const EdgeWeights& weights;

        std::int64_t left(std::int64_t k) const { return tails[k].left; }
        std::int64_t right(std::int64_t k) const { return tails[k].right; }
        double score(std::int64_t k) const { return scores[k]; }
        Wide weight(std::int64_t k) const { return weights[first + k]; }
        std::int64_t number(std::int64_t k) const { return first + k; }
    };
    Edges into(std::int64_t node) const {
        const std::int64_t e = edge_ptr_[node];
        return {edge_ptr_[node + 1] - e, e, tails_.data() + e, scores_.data() + e, weights_};
    }

  private:
    std::vector<std::int64_t> edge_ptr_{0};  // [nodes + 1] the edges into each node
    std::vector<Tails> tails_;               // [edges]
    std::vector<double> scores_;             // [edges]
    EdgeWeights weights_;                    // [edges]
};

}  // namespace crfkit
