// Probabilities of one chain in log space: exact for scores of any size and for forbidden (−inf) parts.
//
// The path engine on ChainGraph. Slower than the scaled kernels (an exp for every arc), and the reference
// that they are tested against.
#pragma once

#include "chain/graph.hpp"

namespace crfkit {

// Throws std::invalid_argument where log Z says that no label sequence is possible.
void require_possible(double log_partition);

// log Z; −inf when no label sequence is possible.
double log_partition(const ChainView& chain);

// P(y_t) into states [T, L]; P(y_{t−1}, y_t) into arcs [T − 1, L, L] unless null. Returns log Z; where that
// is −inf or NaN the arrays mean nothing.
double log_marginals(const ChainView& chain, double* states, double* arcs);

// ∇² log Z · direction, same shapes. `direction` has the shape of the scores.
void log_hessian_vector(const ChainView& chain, const ChainView& direction, double* states, double* arcs);

}  // namespace crfkit
