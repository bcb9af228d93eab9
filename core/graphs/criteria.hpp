// What training minimises for one graph, given what its annotation allows: G is the set of assignments that
// it admits, y the one assignment of a complete annotation.
//
//   likelihood         log Z − log Z_G, exactly, or with the log Z of belief propagation
//   pseudo-likelihood  Σ_v −log p(y_v | all other values of y)           (Besag 1975; complete annotations)
//   piecewise          Σ_f log Z_f − log Z_G,f, each table on its own    (Sutton and McCallum 2005)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graphs/factor_data.hpp"
#include "graphs/graph_sums.hpp"

namespace crfkit {

// The values that an annotation allows, in the forms that criteria need.
struct GraphAnnotation {
    // allowed: a mask over all values, variable by variable.
    void read(const GraphShape& shape, std::span<const std::uint8_t> allowed);

    std::span<const std::uint8_t> allowed;
    bool complete = false;                 // one value for each variable, and no variables were added
    std::vector<std::int32_t> assignment;  // [V] the only allowed value of each variable, −1: several
    std::vector<std::int64_t> entries;     // [tables] of a complete one: its configurations among the scores
};

// One thread at a time.
class GraphCriterion {
  public:
    virtual ~GraphCriterion() = default;
    // The value at scores [n_scores], and in residuals [n_scores] its derivatives by the scores; with moves,
    // how these change along them.
    virtual double evaluate(const GraphAnnotation& gold, const double* scores, const double* moves,
                            double* residuals) = 0;
};

std::unique_ptr<GraphCriterion> likelihood_criterion(const GraphShape& shape, GraphSums& sums);
std::unique_ptr<GraphCriterion> pseudo_likelihood_criterion(const GraphShape& shape);
std::unique_ptr<GraphCriterion> piecewise_criterion(const GraphShape& shape);

}  // namespace crfkit
