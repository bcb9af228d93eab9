// The weights of a trained chain with patterns, ready to score data sets.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "answers/scored_sequences.hpp"
#include "data/weight_tables.hpp"
#include "lattice/function_parts.hpp"
#include "patterns/trellis.hpp"

namespace crfkit {

class PatternPotentials {
  public:
    // w [D]: the weights of the layout and, from `first_weight` on, those of the patterns.
    PatternPotentials(std::shared_ptr<const Layout> layout, std::vector<double> w, std::int64_t first_weight);

    // The data set with its scores; functions: null where the design of the trellises has the features.
    // Trellises and weights must outlive it.
    std::unique_ptr<ScoredSequences> score(std::shared_ptr<const Trellises> trellises,
                                           std::shared_ptr<const FunctionSlices> functions) const;

  private:
    class TrellisReader;
    class ScoredTrellises;

    std::shared_ptr<const Layout> layout_;
    std::vector<double> w_;
    std::int64_t first_weight_;
    WeightTables<double> tables_;  // of features of positions, where labels have no facets
};

}  // namespace crfkit
