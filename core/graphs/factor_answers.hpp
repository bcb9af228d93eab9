// Predictions for a data set of factor graphs at the weights of a trained model.
#pragma once

#include <cstdint>
#include <vector>

#include "graphs/factor_loss.hpp"

namespace crfkit {

// The best values of the variables of all inputs, graph after graph. The criterion of the source says how:
// likelihood exactly, belief_propagation approximately. Throws GraphImpossible for a graph without a
// possible assignment.
std::vector<std::int32_t> decode_graphs(const FactorSource& source, const double* w, int n_threads);
// The probabilities of all values of the variables of all inputs, graph after graph.
std::vector<double> graph_marginals(const FactorSource& source, const double* w, int n_threads);

}  // namespace crfkit
