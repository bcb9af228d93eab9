// Mistakes found on lattices of the candidates of each position.
#pragma once

#include <memory>

#include "training/chain_mistakes.hpp"

namespace crfkit {

// For designs with `as_lattices` or `as_batches`.
std::unique_ptr<Mistakes> lattice_mistakes(const Layout& layout, const Design& design, const Annotation& gold,
                                           const ArcModel& arcs, const double* w, int n_threads);

}  // namespace crfkit
