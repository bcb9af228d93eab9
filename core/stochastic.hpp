// Stochastic gradient descent, sequence by sequence: each step costs what the sequence touches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "annotation.hpp"
#include "arc_model.hpp"
#include "design.hpp"
#include "lattice.hpp"
#include "lattice_data.hpp"
#include "lattice_scorer.hpp"
#include "layout.hpp"

namespace crfkit {

// Minimises Σ_n weight_n (log Z_n − log Z_gold,n) + ½ l2 |w|² over lattices. A step along sequence n of N is
//   w ← (1 − rate · l2 / N) w − rate · ∇ loss_n(w)
// The decay is kept as one factor, w = factor · v, so that no step touches all weights.
class Stochastic {
  public:
    Stochastic(const Layout& layout, const Design& design, const Annotation& gold, const LatticeData& data,
               double l2);

    // Takes one step for each sequence of `order`, with the rate at the same place. w [D] is changed in
    // place. Returns the sum of the losses, each before its step.
    double pass(double* w, std::span<const std::int32_t> order, std::span<const double> rates);

  private:
    double step(std::int64_t n, double rate, double* v);
    void localise_arcs(const double* v);
    void move_nodes(std::int64_t n, double step, double* v);
    void move_arcs(double step, double* v) const;

    const Layout& layout_;
    const Design& design_;
    const Annotation& gold_;
    const LatticeData& data_;
    const double l2_;
    LatticeScorer<double> scorer_;
    double factor_ = 1;
    Lattice lattice_;
    ArcScores arcs_;                     // of the arcs of one lattice
    std::vector<std::int32_t> numbers_;  // [arcs of the lattice] their numbers among the listed arcs
    std::vector<double> scores_, node_residuals_, arc_residuals_, by_facet_;
};

}  // namespace crfkit
