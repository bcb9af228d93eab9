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

#include <algorithm>
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
        n_kinds_ = n_kinds(tree.siblings);
        if (!weigh) return;
        arc_weights_.set(tree.scores, tree.size());
        if (tree.siblings) sibling_weights_.set(tree.siblings, tree.n_siblings());
    }

    // In this order for each span: A→, A←, which exist with siblings alone, S, I→, I←, C←, C→.
    enum Kind : std::int64_t { kFromLeft, kFromRight, kSpan, kArcRight, kArcLeft, kLeft, kRight, kKinds };
    static std::int64_t n_kinds(bool siblings) { return siblings ? kKinds : kKinds - kSpan; }

    std::int64_t n_nodes() const { return node(kRight, 0, tree_.n_words) + 1; }
    // Spans from right to left by where they begin, then by where they end.
    std::int64_t node(Kind kind, std::int64_t i, std::int64_t j) const {
        const std::int64_t row = tree_.n_words - i;
        return (row * (row + 1) / 2 + j - i) * n_kinds_ + kind - (kKinds - n_kinds_);
    }

    // A place that moves with k: begin + step · k + bend · k (k − 1) / 2. Spans that end later are n_kinds
    // further on; spans that begin later lie before, in rows that become shorter.
    struct Course {
        std::int64_t begin = kNoTail, step = 0, bend = 0;
        std::int64_t at(std::int64_t k) const { return begin + step * k + bend * (k * (k - 1) / 2); }
    };
    struct Edges {
        std::int64_t n = 0;
        Course lefts, rights;
        std::int64_t first_left = kNoTail;     // of edge 0, where that has one tail alone
        const double* scores = nullptr;        // null: all are 0
        const EdgeWeights* weights = nullptr;  // of the same places
        std::int64_t part = 0, part_step = 0;  // places of the scores
        std::int64_t number_base = 0;          // the number of place 0

        bool is_first(std::int64_t k) const { return first_left >= 0 && k == 0; }
        std::int64_t left(std::int64_t k) const { return is_first(k) ? first_left : lefts.at(k); }
        std::int64_t right(std::int64_t k) const { return is_first(k) ? kNoTail : rights.at(k); }
        std::int64_t place(std::int64_t k) const { return part + part_step * k; }
        std::int64_t number(std::int64_t k) const { return scores ? number_base + place(k) : kUnnumbered; }
        double score(std::int64_t k) const { return scores ? scores[place(k)] : 0.0; }
        Wide weight(std::int64_t k) const { return scores ? (*weights)[place(k)] : Wide{1.0, 0.0}; }
    };
    Edges into(std::int64_t node) const;

  private:
    void add_spans(Kind kind, std::int64_t i, std::int64_t j, Edges& edges) const;
    void add_arcs(std::int64_t from, std::int64_t to, Kind tail, Edges& edges) const;
    void add_siblings(Kind kind, std::int64_t i, std::int64_t j, Edges& edges) const;
    // Of spans (i, j + k), and of spans (i + k, j).
    Course ends_later(Kind kind, std::int64_t i, std::int64_t j) const {
        return {node(kind, i, j), n_kinds_, 0};
    }
    Course begins_later(Kind kind, std::int64_t i, std::int64_t j) const {
        return {node(kind, i, j), -n_kinds_ * (tree_.n_words - i + 1), n_kinds_};
    }
    // Of spans (i, j − k), and of spans (j − k, j).
    Course ends_earlier(Kind kind, std::int64_t i, std::int64_t j) const {
        return {node(kind, i, j), -n_kinds_, 0};
    }
    Course begins_earlier(Kind kind, std::int64_t i, std::int64_t j) const {
        return {node(kind, i, j), n_kinds_ * (tree_.n_words - i + 2), n_kinds_};
    }

    ProjectiveView tree_{};
    std::int64_t n_kinds_ = kKinds;
    EdgeWeights arc_weights_, sibling_weights_;
};

// The root is nobody's dependent, and has no left side. Where it has one dependent, what lies between the two
// is below the dependent.
inline ProjectiveGraph::Edges ProjectiveGraph::into(std::int64_t node) const {
    const std::int64_t span = node / n_kinds_;
    auto row = static_cast<std::int64_t>((std::sqrt(8.0 * static_cast<double>(span) + 1.0) - 1.0) / 2.0);
    while (row * (row + 1) / 2 > span) --row;  // the square root is rounded
    while ((row + 1) * (row + 2) / 2 <= span) ++row;
    const std::int64_t i = tree_.n_words - row, j = i + span - row * (row + 1) / 2;
    const auto kind = static_cast<Kind>(node % n_kinds_ + kKinds - n_kinds_);
    Edges edges;
    if (i == j) {
        edges.n = kind == kLeft || kind == kRight;
    } else if (kind == kArcRight) {
        add_arcs(i, j, tree_.siblings ? kFromLeft : kSpan, edges);
    } else if (kind == kArcLeft) {
        if (i > 0) add_arcs(j, i, tree_.siblings ? kFromRight : kSpan, edges);
    } else if (kind == kFromLeft || kind == kFromRight) {
        if (tree_.siblings && (i > 0 || kind == kFromLeft)) add_siblings(kind, i, j, edges);
    } else if (i > 0 || kind != kLeft) {
        add_spans(kind, i, j, edges);
    }
    if (i == 0 && tree_.one_root && (kind == kSpan || kind == kFromLeft))
        edges.n = std::min<std::int64_t>(edges.n, 1);
    return edges;
}

// S, C← and C→.
inline void ProjectiveGraph::add_spans(Kind kind, std::int64_t i, std::int64_t j, Edges& edges) const {
    edges.n = j - i;
    if (kind == kSpan) {
        edges.lefts = ends_later(kRight, i, i);
        edges.rights = begins_later(kLeft, i + 1, j);
    } else if (kind == kLeft) {
        edges.lefts = ends_later(kLeft, i, i);
        edges.rights = begins_later(kArcLeft, i, j);
    } else {
        edges.lefts = ends_later(kArcRight, i, i + 1);
        edges.rights = begins_later(kRight, i + 1, j);
    }
}

// I, one edge for each label.
inline void ProjectiveGraph::add_arcs(std::int64_t from, std::int64_t to, Kind tail, Edges& edges) const {
    edges.n = tree_.n_labels;
    edges.lefts.begin = node(tail, std::min(from, to), std::max(from, to));
    edges.scores = tree_.scores;
    edges.weights = &arc_weights_;
    edges.part = (from * tree_.side() + to) * tree_.n_labels;
    edges.part_step = 1;
}

// A, one edge for each sibling, those next to the head first.
inline void ProjectiveGraph::add_siblings(Kind kind, std::int64_t i, std::int64_t j, Edges& edges) const {
    const std::int64_t side = tree_.side();
    edges.n = j - i;
    edges.scores = tree_.siblings;
    edges.weights = &sibling_weights_;
    edges.number_base = tree_.size();
    if (kind == kFromLeft) {
        edges.first_left = node(kLeft, i + 1, j);
        edges.lefts = ends_later(kArcRight, i, i);
        edges.rights = begins_later(kSpan, i, j);
        edges.part = (i * side + i) * side + j;
        edges.part_step = side;
    } else {
        edges.first_left = node(kRight, i, j - 1);
        edges.lefts = ends_earlier(kSpan, i, j);
        edges.rights = begins_earlier(kArcLeft, j, j);
        edges.part = (j * side + j) * side + i;
        edges.part_step = -side;
    }
}

}  // namespace crfkit
