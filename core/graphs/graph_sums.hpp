// log Z and marginals of one graph at changing scores: exactly, or by an approximation that takes its place.
#pragma once

#include <cstdint>
#include <memory>

#include "graphs/belief_propagation.hpp"
#include "graphs/factor_graph.hpp"
#include "graphs/junction_tree.hpp"

namespace crfkit {

// One thread at a time. Scores [n_scores] are finite or −inf.
class GraphSums {
  public:
    virtual ~GraphSums() = default;
    // Fills marginals [n_scores], one for each configuration of each table; returns log Z, −inf where no
    // assignment is possible.
    virtual double marginals(const double* scores, double* marginals) = 0;
    // Fills changes [n_scores]: how the marginals change along a direction of the scores. Returns log Z.
    virtual double hessian_vector(const double* scores, const double* direction, double* changes) = 0;
    // Fills assignment [V] with the best one, or with a good one; returns its score, −inf where none is
    // possible.
    virtual double decode(const double* scores, std::int32_t* assignment) = 0;
};

// By a junction tree, which is complete(). Both must outlive it.
std::unique_ptr<GraphSums> exact_sums(const FactorGraph& graph, const JunctionTree& tree);
// By loopy belief propagation, which must outlive it: log Z is that of Bethe, or the upper bound of
// reweighted messages. Hessian–vector products are derivatives of the beliefs at the fixed point
// (belief_derivative.hpp); where its sweeps do not converge, central differences.
std::unique_ptr<GraphSums> belief_sums(const FactorGraph& graph, const BeliefPropagation& messages);

}  // namespace crfkit
