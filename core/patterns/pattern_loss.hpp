// Σ_n weight_n (log Z_n − log Z_gold,n) of a chain with patterns, over the trellises of its data.
#pragma once

#include <cstdint>
#include <memory>

#include "data/annotation.hpp"
#include "lattice/function_parts.hpp"
#include "patterns/trellis.hpp"
#include "training/data_loss.hpp"

namespace crfkit {

// The loss of patterns over trellises. functions: null where the design of the trellises has the features.
// Facets, features of arcs and functions beside patterns are answered from parts (PartLoss), all else by
// PatternLoss. n_weights: D; the weights of the patterns end at or before it. Throws std::invalid_argument if
// things do not fit together.
std::unique_ptr<DataLoss> pattern_loss(std::shared_ptr<const Trellises> trellises,
                                       std::shared_ptr<const FunctionSlices> functions, Annotation gold,
                                       std::int64_t n_weights, bool single_precision, int n_threads);

}  // namespace crfkit
