// The questions on a data set of label sequences that are given by their parts (training/parts.hpp): by the
// path engine, for whatever has no faster backend.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "answers/scored_sequences.hpp"
#include "training/parts.hpp"

namespace crfkit {

// Level t of the parts holds the nodes of position t. Annotation and weights of sequences are ignored.
class ScoredParts : public ScoredSequences {
  public:
    ScoredParts(const Layout& layout, const Design& design, std::shared_ptr<const PartSource> source,
                std::vector<double> w)
        : ScoredSequences(layout, design), w_(std::move(w)), source_(std::move(source)) {}

  protected:
    std::unique_ptr<ScoredSequence> reader() const override;

    const std::vector<double> w_;  // [D]

  private:
    class Reader;

    std::shared_ptr<const PartSource> source_;
};

}  // namespace crfkit
