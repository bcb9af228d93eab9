// Σ_n weight_n (log Z_n − log Z_gold,n) for feature functions, whose values on a data set may not fit into
// memory: it is worked through slice by slice, in double precision.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/annotation.hpp"
#include "lattice/function_parts.hpp"
#include "training/data_loss.hpp"

namespace crfkit {

// gold: of the whole data set, the positions of whose sequences begin at sequence_ptr [N + 1]. Throws
// std::invalid_argument where they do not fit together.
std::unique_ptr<DataLoss> function_loss(std::shared_ptr<const FunctionSlices> slices,
                                        std::vector<std::int64_t> sequence_ptr, Annotation gold,
                                        std::int64_t n_weights, int n_threads);

}  // namespace crfkit
