// One sequence as a lattice: nodes are the candidate labels of its positions, arcs link nodes of neighbouring
// positions.
//
// All arithmetic is double and follows one scheme. A forward pass gives, for every arc e into a node j, the
// probability of the arc given the node:
//   f(j) ∝ exp(score j) · Σ_e f(src e) W(e),       back(e) = f(src e) W(e) / Σ_e' f(src e') W(e')
// and a backward pass turns these into marginals without messages of its own:
//   P(last nodes) ∝ f,      P(e) = P(dst e) · back(e),      P(src) = Σ_e P(e)
// The Hessian–vector product differentiates the same two passes. Where f would underflow, the forward pass is
// done again in log space; everything after it is the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/annotation.hpp"
#include "data/bigrams.hpp"
#include "data/candidates.hpp"

namespace crfkit {

// The scores of all listed arcs at the current weights.
struct ArcScores {
    std::vector<double> scores;   // [A]
    std::vector<double> weights;  // [A] exp(score − peak)
    double peak = 0;
    double unlisted = 0;  // exp(0 − peak) if unlisted arcs exist, else 0

    // To be called when `scores` is filled in.
    void exponentiate(bool soft);
};

class Lattice {
  public:
    // The arcs among the candidates of positions first..last−1.
    void build(const Bigrams& bigrams, const Candidates& candidates, std::int64_t first, std::int64_t last);

    std::int64_t n_positions() const { return static_cast<std::int64_t>(position_ptr.size()) - 1; }
    std::int64_t n_nodes() const { return position_ptr.back(); }
    std::int64_t n_arcs_into(std::int64_t t) const {
        return in_ptr[position_ptr[t + 1]] - in_ptr[position_ptr[t]];
    }

    // The node of a label at position t, which must be one of its candidates.
    std::int64_t find_node(std::int64_t t, std::int32_t label) const;
    // Place of the arc between two nodes; −1 when there is none.
    std::int64_t find_arc(std::int64_t before, std::int64_t node) const;
    // Closes the nodes whose labels an annotation does not admit; position t is its position first_position +
    // t.
    void close(const Annotation& annotation, std::int64_t first_position, std::vector<double>& scores) const;

    // Forward and backward pass. scores [nodes]; −inf closes a node. Returns log Z, −inf when nothing is
    // possible.
    double marginals(const ArcScores& arcs, std::span<const double> scores);
    // After marginals: how they move along a direction of scores, given for nodes and for listed arcs.
    void hessian_vector(std::span<const double> node_direction, std::span<const double> arc_direction);
    // Forward pass only.
    double log_partition(const ArcScores& arcs, std::span<const double> scores);
    // After log_partition: n exact samples, as labels [n, T], by uniforms [n, T] in [0, 1).
    void sample(std::int64_t n, const double* uniforms, std::int32_t* labels) const;
    // The best node of every position (as label), and its score; −inf when nothing is possible.
    double best(const ArcScores& arcs, std::span<const double> scores, std::int32_t* labels);

    std::vector<std::int64_t> position_ptr;  // [T + 1] the nodes of each position
    std::vector<std::int32_t> labels;        // [nodes]
    std::vector<std::int64_t> in_ptr;        // [nodes + 1] the arcs into each node
    std::vector<std::int32_t> from;          // [arcs] node before
    std::vector<std::int32_t> arc;           // [arcs] number among the listed arcs; −1: not listed, score 0

    std::vector<double> node_probs, arc_probs;      // P, after marginals
    std::vector<double> node_changes, arc_changes;  // dP, after Hessian–vector product

  private:
    bool forward_scaled(const ArcScores& arcs, std::span<const double> scores);
    void forward_in_log_space(const ArcScores& arcs, std::span<const double> scores);
    void backward();

    double log_partition_ = 0;
    std::vector<double> forward_;      // [nodes] normalised at each position
    std::vector<double> back_;         // [arcs] P(arc | its end)
    std::vector<double> slope_;        // [nodes] d log f, centred at each position
    std::vector<double> arriving_;     // [nodes] d log Σ_e f(src e) W(e), before centring
    std::vector<std::int32_t> place_;  // [L] scratch: node of a label at the position before, −1 elsewhere
};

}  // namespace crfkit
