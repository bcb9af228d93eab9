// The projective trees of a sentence as the hyperpaths of a graph (hyperpaths/graph.hpp): Eisner's algorithm
// (1996), with adjacent siblings that of McDonald & Pereira (2006).
//
// A tree is projective if the words below each word, with it, stand next to each other in the sentence. Nodes
// are spans i … j of places 0 … n, place 0 is the root:
//   C→(i, j)   i and all below it to its right, up to j          C←(i, j)   j and all below it to its left,
//   from i I→(i, j)   the arc i → j, and all between the two            I←(i, j)   the arc j → i, and all
//   between the two S(i, j)    all between i and j, where i and j have the same head or one is the head of
//   the other
// Edges, where k runs over the places at which spans meet:
//   S(i, j)  = Σ_k C→(i, k) C←(k + 1, j)          i ≤ k < j
//   I→(i, j) = exp(score(i → j)) S(i, j)          I←(i, j) = exp(score(j → i)) S(i, j)
//   C→(i, j) = Σ_k I→(i, k) C→(k, j)              C←(i, j) = Σ_k C←(i, k) I←(k, j)
// With scores of siblings, A takes the place of S in I, and (h, s, m) is the score of the dependents s and m
// of h, next to each other on one side of it, s nearer to h; (h, h, m) where m is the nearest on its side:
//   A→(i, j) = exp(i, i, j) C←(i + 1, j) + Σ_{i<k<j} exp(i, k, j) I→(i, k) S(k, j)
//   A←(i, j) = exp(j, j, i) C→(i, j − 1) + Σ_{i<k<j} exp(j, k, i) S(i, k) I←(k, j)
// The goal is C→(0, n). Where the root has one dependent, S(0, j) and A→(0, j) have their first edge alone.
// Every projective tree is one hyperpath: an arc has one I, its head one I or C that follows it.
//
// I has an edge for each label. Edges with a score have the numbers of their scores in the arrays [n + 1, n +
// 1, R] and behind these [n + 1, n + 1, n + 1]; all others are unnumbered. There are n³ / 2 edges, with
// siblings 5 n³ / 6, and none is stored.
#pragma once

#include <cmath>
#include <cstdint>

#include "hyperpaths/edge_weights.hpp"
#include "hyperpaths/graph.hpp"
#include "trees/graph.hpp"

namespace crfkit {

// Scores of one sentence. Of siblings [n + 1, n + 1, n + 1] (head, sibling, dependent), or null: none.
struct ProjectiveView : TreeView {
    const double* siblings;

    std::int64_t n_siblings() const { return siblings ? side() * side() * side() : 0; }
};

class ProjectiveGraph {
  public:
    // The view must outlive it. `weigh` is needed for sums.
    void set(const ProjectiveView& tree, bool weigh) {
        tree_ = tree;
        if (!weigh) return;
        arc_weights_.set(tree.scores, tree.size());
        if (tree.siblings) sibling_weights_.set(tree.siblings, tree.n_siblings());
    }

    // In this order for each span.
    enum Kind : std::int64_t { kSpan, kFromLeft, kFromRight, kArcRight, kArcLeft, kLeft, kRight, kKinds };

    std::int64_t n_nodes() const { return node(kRight, 0, tree_.n_words) + 1; }
    // Spans from right to left by where they begin, then by where they end.
    std::int64_t node(Kind kind, std::int64_t i, std::int64_t j) const {
        const std::int64_t row = tree_.n_words - i;
        return (row * (row + 1) / 2 + j - i) * kKinds + kind;
    }

    class Edges {
      public:
        Edges(const ProjectiveGraph& graph, Kind kind, std::int64_t i, std::int64_t j)
            : n(graph.count(kind, i, j)), graph_(graph), kind_(kind), i_(i), j_(j) {}

        std::int64_t left(std::int64_t k) const;
        std::int64_t right(std::int64_t k) const;
        std::int64_t number(std::int64_t k) const;
        double score(std::int64_t k) const;
        Wide weight(std::int64_t k) const;

        std::int64_t n;

      private:
        std::int64_t part(std::int64_t k) const;

        const ProjectiveGraph& graph_;
        Kind kind_;
        std::int64_t i_, j_;
    };
    Edges into(std::int64_t node) const;

  private:
    std::int64_t count(Kind kind, std::int64_t i, std::int64_t j) const;

    ProjectiveView tree_{};
    EdgeWeights arc_weights_, sibling_weights_;
};

inline ProjectiveGraph::Edges ProjectiveGraph::into(std::int64_t node) const {
    const std::int64_t span = node / kKinds;
    auto row = static_cast<std::int64_t>((std::sqrt(8.0 * static_cast<double>(span) + 1.0) - 1.0) / 2.0);
    while (row * (row + 1) / 2 > span) --row;  // the root is rounded
    while ((row + 1) * (row + 2) / 2 <= span) ++row;
    const std::int64_t i = tree_.n_words - row;
    return {*this, static_cast<Kind>(node % kKinds), i, i + span - row * (row + 1) / 2};
}

// How many edges there are into a node. The root is nobody's dependent, and has no left side.
inline std::int64_t ProjectiveGraph::count(Kind kind, std::int64_t i, std::int64_t j) const {
    if (i == j) return kind == kLeft || kind == kRight;
    const bool first_alone = i == 0 && tree_.one_root;
    switch (kind) {
        case kSpan:
            return first_alone ? 1 : j - i;
        case kFromLeft:
            return !tree_.siblings ? 0 : first_alone ? 1 : j - i;
        case kFromRight:
            return !tree_.siblings || i == 0 ? 0 : j - i;
        case kArcRight:
            return tree_.n_labels;
        case kArcLeft:
            return i == 0 ? 0 : tree_.n_labels;
        case kLeft:
            return i == 0 ? 0 : j - i;
        default:
            return j - i;
    }
}

inline std::int64_t ProjectiveGraph::Edges::left(std::int64_t k) const {
    const std::int64_t i = i_, j = j_;
    if (i == j) return kNoTail;
    const bool siblings = graph_.tree_.siblings;
    switch (kind_) {
        case kSpan:
            return graph_.node(kRight, i, i + k);
        case kFromLeft:
            return k == 0 ? graph_.node(kLeft, i + 1, j) : graph_.node(kArcRight, i, i + k);
        case kFromRight:
            return k == 0 ? graph_.node(kRight, i, j - 1) : graph_.node(kSpan, i, j - k);
        case kArcRight:
            return graph_.node(siblings ? kFromLeft : kSpan, i, j);
        case kArcLeft:
            return graph_.node(siblings ? kFromRight : kSpan, i, j);
        case kLeft:
            return graph_.node(kLeft, i, i + k);
        default:
            return graph_.node(kArcRight, i, i + k + 1);
    }
}

inline std::int64_t ProjectiveGraph::Edges::right(std::int64_t k) const {
    const std::int64_t i = i_, j = j_;
    if (i == j) return kNoTail;
    switch (kind_) {
        case kSpan:
            return graph_.node(kLeft, i + k + 1, j);
        case kFromLeft:
            return k == 0 ? kNoTail : graph_.node(kSpan, i + k, j);
        case kFromRight:
            return k == 0 ? kNoTail : graph_.node(kArcLeft, j - k, j);
        case kLeft:
            return graph_.node(kArcLeft, i + k, j);
        case kRight:
            return graph_.node(kRight, i + k + 1, j);
        default:
            return kNoTail;
    }
}

// The place of the score of an edge in the array of arcs, or of siblings.
inline std::int64_t ProjectiveGraph::Edges::part(std::int64_t k) const {
    const std::int64_t i = i_, j = j_, side = graph_.tree_.side(), R = graph_.tree_.n_labels;
    switch (kind_) {
        case kFromLeft:
            return (i * side + i + k) * side + j;
        case kFromRight:
            return (j * side + j - k) * side + i;
        case kArcRight:
            return (i * side + j) * R + k;
        case kArcLeft:
            return (j * side + i) * R + k;
        default:
            return kUnnumbered;
    }
}

inline std::int64_t ProjectiveGraph::Edges::number(std::int64_t k) const {
    const bool of_siblings = kind_ == kFromLeft || kind_ == kFromRight;
    return part(k) + (of_siblings ? graph_.tree_.size() : 0);
}

inline double ProjectiveGraph::Edges::score(std::int64_t k) const {
    switch (kind_) {
        case kFromLeft:
        case kFromRight:
            return graph_.tree_.siblings[part(k)];
        case kArcRight:
        case kArcLeft:
            return graph_.tree_.scores[part(k)];
        default:
            return 0.0;
    }
}

inline Wide ProjectiveGraph::Edges::weight(std::int64_t k) const {
    switch (kind_) {
        case kFromLeft:
        case kFromRight:
            return graph_.sibling_weights_[part(k)];
        case kArcRight:
        case kArcLeft:
            return graph_.arc_weights_[part(k)];
        default:
            return {1.0, 0.0};
    }
}

}  // namespace crfkit
