// Mistakes found by whole rows of labels. The rows that the kernels read are kept up to date weight by
// weight.
#pragma once

#include <memory>

#include "training/chain_mistakes.hpp"

namespace crfkit {

// For designs that are split into rows and entries.
std::unique_ptr<Mistakes> row_mistakes(const Layout& layout, const Design& design, const Annotation& gold,
                                       const ArcModel& arcs, const double* w, bool single_precision);

}  // namespace crfkit
