// The questions on one chain by the scaled kernels, in double precision: the fast twin of log_chain.hpp.
#pragma once

#include "chain/log_chain.hpp"

namespace crfkit {

// Whether the scaled kernels are exact for these arcs: all finite, and not too far apart at any position.
bool scaled_is_exact(const ChainView& chain);

// The same answers as log_chain.hpp. T ≥ 1 and scaled_is_exact are required. States may be −inf.
double scaled_log_partition(const ChainView& chain);
double scaled_marginals(const ChainView& chain, double* states, double* arcs);
void scaled_hessian_vector(const ChainView& chain, const ChainView& direction, double* states, double* arcs);

}  // namespace crfkit
