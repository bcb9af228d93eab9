// Sums over all spanning trees of a sentence: log Z, marginals, Hessian–vector product, entropy.
#pragma once

#include "trees/graph.hpp"

namespace crfkit {

// log Z; −inf where no tree exists. A sentence without words has one tree, the empty one.
double tree_log_partition(const TreeView& tree);

// Those below throw NoTree.

// log Z; the probability of each arc into marginals, in the shape of the scores.
double tree_marginals(const TreeView& tree, double* marginals);

// ∇² log Z · direction, in the shape of the scores; direction is finite.
void tree_hessian_vector(const TreeView& tree, const double* direction, double* hessian_vector);

// −Σ_y p(y) log p(y)
double tree_entropy(const TreeView& tree);

}  // namespace crfkit
