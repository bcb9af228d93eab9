// Value and gradient of log Z, summed over a data set of word lattices.
//
// Boundary t of a sequence has nodes E(t, c), "an arc of label c ends here", and B(t, c), "one begins here";
// START is the only E of the first boundary, END the only B of the last one. With T = exp(transition),
//
//   v(a) = α_B(start, c) exp(score a + C_start − M_t)    α_E(t, c) = Σ_{a into (t, c)} v(a)
//   α_B(t, b) = Σ_c α_E(t, c) T(c, b) / sum_t            C_t = M_t + log sum_t
//
// where M_t is the highest exponent of the arcs into t and sum_t makes the α_B of a boundary add up to 1, so
// that log Z = C of the last boundary. Backward, P(END) = 1 and
//
//   q(b) = P(B(t, b)) / (α_B(t, b) sum_t)    P(c, b) = α_E(t, c) T(c, b) q(b)    P(a) = v(a) Σ_b T(c, b) q(b)
//
// One exp for each arc, none for a transition: T is computed once for each pair of labels. Nodes of one
// boundary have all transitions in common, so what underflows in α is at most e^(2 · largest transition) of
// what is kept: `evaluate` says where that might matter.
//
// Arcs with equal features share a score, and so do equal pairs of labels: their residuals are summed before
// they reach the weights.
#pragma once

#include <cstdint>
#include <vector>

#include "segments/word_lattice.hpp"

namespace crfkit {

// Lists of (weight, value), equal ones once: what scores arcs, and what scores transitions.
struct WordScores {
    std::int64_t size() const { return static_cast<std::int64_t>(ptr.size()) - 1; }
    // scores [lists + 1] = lists · w, and 0 for what has no list.
    void set(const double* w, std::vector<double>& scores) const;
    // gradient += listsᵀ residuals
    void add_gradient(const std::vector<double>& residuals, double* gradient) const;

    std::vector<std::int64_t> ptr{0};
    std::vector<std::int32_t> weights;
    std::vector<double> values;
};

// The features of the arcs of a data set, equal lists once.
struct WordArcScores {
    explicit WordArcScores(const WordLattices& data);

    WordScores lists;
    std::vector<std::int32_t> of_arc;  // [T] the number of lists where it has none
};

class WordLatticeEvaluator {
  public:
    // All must outlive it. Sequence n counts weights[n] times.
    WordLatticeEvaluator(const WordLattices& data, const WordArcScores& arcs,
                         const std::vector<double>& weights);

    // Adds sign · Σ_n weights[n] log Z_n to value, and its derivatives to the residuals of arc scores and of
    // transitions; all of these have a last entry for what has no weights. Returns whether it is exact; where
    // it is not, nothing of it may be used.
    bool evaluate(const std::vector<double>& arc_scores, const std::vector<double>& transition_scores,
                  double sign, int n_threads, double& value, std::vector<double>& arc_residuals,
                  std::vector<double>& transition_residuals) const;

  private:
    struct Work;
    struct Sums;
    void compile(std::int64_t n);
    bool run(std::int64_t n, const double* arc_scores, const double* transitions, Work& work,
             Sums& sums) const;
    void go_back(std::int64_t n, double prob, const double* transitions, Work& work, Sums& sums) const;

    const WordLattices& data_;
    const WordArcScores& arcs_;
    const std::vector<double>& weights_;
    std::vector<std::int64_t> boundary_ptr_{0};  // [N + 1]
    std::vector<std::int64_t> ended_{0}, begun_{0},
        pair_ptr_{0};                         // [boundaries + 1] nodes E and B, and pairs
    std::vector<std::int64_t> arc_ptr_{0};    // [nodes E + 1] the arcs into each
    std::vector<std::int32_t> score_;         // [arcs] their list of features
    std::vector<std::int32_t> begin_, from_;  // [arcs] node B and boundary, counted in the sequence
    std::vector<std::int32_t> pair_;          // [pairs] transition, for each B all E
    std::vector<std::int64_t> block_ptr_;     // the sequences of each block
};

}  // namespace crfkit
