// The questions on one sequence whose label sequences are the paths of a trellis. All arithmetic is double.
//
// As on lattices (lattice.hpp), a forward pass gives every arc e into a node j its probability given the
// node,
//   f(j) ∝ exp(score j) · Σ_e f(src e) W(e),       back(e) = f(src e) W(e) / Σ_e' f(src e') W(e')
// and what follows needs no other messages:  P(sink) = 1,  P(e) = P(dst e) · back(e),  P(src) = Σ_e P(e).
// Messages are normalised at each position; where one would underflow, the forward pass is done again in log
// space.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lattice/arc_model.hpp"
#include "patterns/trellis.hpp"

namespace crfkit {

// Scores of the arcs of steps, or a direction of such scores: arcs first of all by their bigram and by what
// fires on them; silent arcs score 0.
class StepScores {
  public:
    // Of all steps of a table, where arcs [A] score the same at every position; active [active sets].
    void score_all(const StepTable& table, const double* arcs, const std::vector<double>& active);
    // Of all steps of some trellises at the weights w [D]; `model` of the same layout.
    void score_weights(const Trellises& trellises, const ArcModel& model, const double* w);
    // Of the steps of one sequence, with arcs [T − 1, A] position by position.
    void score_each(const StepTable& table, std::span<const std::int32_t> steps, const double* arcs,
                    std::int64_t n_arcs, const std::vector<double>& active);
    // weights = exp(scores − peak); 1 for silent arcs. To be called before a question that needs weights.
    void exponentiate(const StepTable& table);

    // Those of a step at place t of the sequence: one number for each of its arcs.
    const double* scores(std::int64_t t, std::int32_t step) const { return scores_.data() + first(t, step); }
    const double* weights(std::int64_t t, std::int32_t step) const {
        return weights_.data() + first(t, step);
    }
    double peak(std::int64_t t, std::int32_t step) const { return peaks_[each_ ? t : step]; }

  private:
    std::int64_t first(std::int64_t t, std::int32_t step) const { return first_[each_ ? t : step]; }
    void score(const StepTable& table, const Step& step, const double* arcs,
               const std::vector<double>& active);

    bool each_ = false;                // by place in the sequence, not by step
    std::vector<std::int32_t> steps_;  // what the entries are about
    std::vector<std::int64_t> first_;
    std::vector<double> scores_, weights_, peaks_;
};

// One sequence with its scores.
struct ScoredTrellis {
    const StepTable& table;
    std::span<const std::int32_t> steps;  // [T + 1]
    std::int32_t n_labels;
    const double* states;  // [T, L] −inf closes a label
    const StepScores& arcs;

    std::int64_t n_positions() const { return static_cast<std::int64_t>(steps.size()) - 1; }
    const Step& step(std::int64_t t) const { return table.steps[steps[t]]; }
    // The scores of the nodes after step t; null for the sink.
    const double* position(std::int64_t t) const {
        return t < n_positions() ? states + t * n_labels : nullptr;
    }
};

class TrellisRun {
  public:
    // Forward pass. Returns log Z, −inf when nothing is possible. T ≥ 1; the trellis must outlive the
    // questions that follow.
    double log_partition(const ScoredTrellis& trellis, bool in_log_space = false);
    // Both passes: fills node_probs and arc_probs.
    double marginals(const ScoredTrellis& trellis, bool in_log_space = false);
    // After marginals: how they move along a direction of scores; fills node_changes and arc_changes.
    void hessian_vector(const ScoredTrellis& trellis, const double* states, const StepScores& arcs);
    // After marginals: −Σ p log p, from terms ≥ 0.
    double entropy() const;
    // After log_partition: n samples, as labels [n, T], by uniforms [n, T] in [0, 1).
    void sample(const ScoredTrellis& trellis, std::int64_t n, const double* uniforms,
                std::int32_t* labels) const;
    // The best labels [T] and their score; −inf when nothing is possible.
    double best(const ScoredTrellis& trellis, std::int32_t* labels);

    // Sums numbers of nodes and of arcs (probabilities, or changes) by what they stand for: label at a
    // position [T, L], bigram between two positions [T − 1, A], active set. Added to what is there.
    void collect(const ScoredTrellis& trellis, const std::vector<double>& of_nodes,
                 const std::vector<double>& of_arcs, std::int64_t n_arcs, double* states, double* arcs,
                 std::vector<double>& active) const;

    // Step t has its nodes from node_begin[t] on, in its own numbers: the nodes after it are those before the
    // next. Its arcs begin at arc_begin[t].
    std::vector<std::int64_t> node_begin, arc_begin;
    std::vector<double> node_probs, arc_probs;
    std::vector<double> node_changes, arc_changes;

  private:
    void place(const ScoredTrellis& trellis);
    bool forward_scaled(const ScoredTrellis& trellis);
    bool push(const ScoredTrellis& trellis, std::int64_t t, double peak, double& mass);
    void forward_in_log_space(const ScoredTrellis& trellis);
    void backward(const ScoredTrellis& trellis);

    double log_partition_ = 0;
    std::vector<double> forward_;   // [nodes]
    std::vector<double> back_;      // [arcs] P(arc | its destination)
    std::vector<double> slope_;     // [nodes] d log f, centred at each position
    std::vector<double> arriving_;  // [nodes] d log Σ_e f(src e) W(e)
};

}  // namespace crfkit
