// The sequences of trellises as parts (training/parts.hpp): what scores a label belongs to all nodes that
// have it, what scores a pair of labels and what the patterns add belongs to arcs. Anything may stand beside
// patterns: facets, features of transitions, feature functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "data/annotation.hpp"
#include "data/arc_model.hpp"
#include "lattice/function_factors.hpp"
#include "patterns/trellis.hpp"
#include "training/parts.hpp"

namespace crfkit {

class TrellisParts final : public PartSource {
  public:
    // functions: null where the design of the trellises has the features. Without an annotation all label
    // sequences are allowed. n_weights: D; the weights of the patterns end at or before it.
    TrellisParts(std::shared_ptr<const Trellises> trellises, std::shared_ptr<const FunctionSlices> functions,
                 std::optional<Annotation> gold, std::int64_t n_weights);

    std::unique_ptr<PartReader> open() const override;

  private:
    class Reader;

    std::shared_ptr<const Trellises> trellises_;
    std::shared_ptr<const FunctionSlices> functions_;
    std::optional<Annotation> gold_;
    ArcModel model_;
};

}  // namespace crfkit
