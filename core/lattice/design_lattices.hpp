// The lattices of a design, at weights that are read when a lattice is asked for.
#pragma once

#include <memory>

#include "data/arc_model.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "lattice/scored_lattice.hpp"

namespace crfkit {

// For designs with `as_lattices` or `as_batches`. Everything must outlive it; the weights w [D] and the
// `tables` of the same weights may change between two lattices.
std::unique_ptr<LatticeSource> design_lattices(const Layout& layout, const Design& design,
                                               const ArcModel& model, const ArcTables& tables,
                                               const double* w, int n_threads);

}  // namespace crfkit
