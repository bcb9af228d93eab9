// Σ_n weight_n (log Z_n − log Z_gold,n) over trees with parts of second order (tree_parts.hpp), always in
// double precision.
#pragma once

#include <memory>

#include "training/data_loss.hpp"
#include "trees/arc_layout.hpp"
#include "trees/candidate_arcs.hpp"
#include "trees/second_order_sums.hpp"

namespace crfkit {

// The trees that are known are projective where all heads of a sentence are known, and their arcs are
// candidates. Throws std::invalid_argument where things do not fit together, and where no tree agrees with
// what is known of a sentence.
std::unique_ptr<DataLoss> second_order_loss(std::shared_ptr<const ArcLayout> layout,
                                            std::shared_ptr<const Treebank> treebank, KnownTrees trees,
                                            CandidateArcs candidates, SumsOf sums, int n_threads);

}  // namespace crfkit
