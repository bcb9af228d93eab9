// The best of all trees with parts of second order, with an upper bound on all scores, by dual decomposition
// (Koo, Rush, Collins, Jaakkola and Sontag 2010) and branch and bound.
//
// Arcs score s_a, automaton h (head_automata.hpp) scores f_h what it reads: the arc y that its head hangs on,
// and the arcs x out of it. Every reading of its own:
//
//   score(tree) ≤ L(u, v) = max_z Σ_a (s_a + u_a + v_a) z_a
//                           + Σ_h max_(x, y) f_h(x, y) − Σ_(b out of h) u_b x_b − Σ_(a into h) v_a y_a
//
// for all u, v: with x = y = z, a tree, what is added is subtracted. The bound is lowered along its
// subgradient, u −= step (z − x), v −= step (z − y). Where x, y and z agree, or a tree with the score of the
// bound is known, that tree is the best. Where it stays above, an arc that they do not agree on is required
// in one half of the trees and forbidden in the other, and the halves are searched alike, the one with the
// higher bound first.
#pragma once

#include <cstdint>
#include <vector>

#include "trees/head_automata.hpp"

namespace crfkit {

class TreeDual {
  public:
    // Trees by the number of the arc into each word.
    struct Found {
        std::vector<std::int32_t> tree;
        double score, bound;
        std::int64_t n_iterations;  // evaluations of L
    };

    // Scores [parts], of arcs those of their best labels; −inf forbids.
    TreeDual(const HeadAutomata& parts, const double* scores, bool one_root);

    // Begins with a tree, and with u and v [arcs] or with 0, whichever bound is lower.
    Found search(std::vector<std::int32_t> tree, const double* u, const double* v,
                 std::int64_t most_iterations);

  private:
    // Some trees: those of the arcs that are allowed.
    struct Branch {
        double bound;
        std::vector<char> allowed;   // [arcs]
        std::vector<double> u, v;    // [arcs]
        std::int32_t disputed = -1;  // the arc to halve it by

        bool operator<(const Branch& other) const { return bound < other.bound; }
    };
    // The best reading of one side.
    struct Reading {
        double score;
        std::int64_t last;  // its last dependent; −1: none
    };

    double evaluate(const Branch& branch);
    double best_of_trees(const Branch& branch);
    double read_head(const Branch& branch, std::int32_t head);
    double read_only_root(const Branch& branch);
    Reading read_side(const Branch& branch, std::int32_t head, Side side, std::int64_t k);
    void mark_side(std::int32_t head, Side side, std::int64_t last);
    void lower(Branch& branch, std::int64_t most_iterations);
    std::int32_t most_disputed(const Branch& branch, double n_rounds) const;
    bool is_closed(double bound) const;

    const HeadAutomata& parts_;
    const double* scores_;
    bool one_root_;
    Found best_{};
    std::vector<double> dense_, forward_;
    std::vector<std::int64_t> back_;
    std::vector<char> tree_, out_, in_;  // z, x, y at the last u and v
    std::vector<double> shares_;         // [arcs] how often an arc was chosen by z, x and y, by 3
};

}  // namespace crfkit
