// Σ_n weight_n (log Z_n − log Z_gold,n) over the trees of a treebank, always in double precision.
#pragma once

#include <memory>

#include "training/data_loss.hpp"
#include "trees/arc_layout.hpp"

namespace crfkit {

// Throws std::invalid_argument where things do not fit together, and where no tree agrees with what is known
// of a sentence.
std::unique_ptr<DataLoss> tree_loss(std::shared_ptr<const ArcLayout> layout,
                                    std::shared_ptr<const Treebank> treebank, KnownTrees trees, bool one_root,
                                    int n_threads);

}  // namespace crfkit
