// The questions on a data set of scored lattices, answered by the path engine.
#pragma once

#include <memory>

#include "answers/scored_sequences.hpp"
#include "lattice/scored_lattice.hpp"

namespace crfkit {

class ScoredLattices : public ScoredSequences {
  public:
    ScoredLattices(const Layout& layout, const Design& design, std::unique_ptr<LatticeSource> source)
        : ScoredSequences(layout, design), source_(std::move(source)) {}

  protected:
    std::unique_ptr<ScoredSequence> reader() const override;

  private:
    std::unique_ptr<LatticeSource> source_;
};

}  // namespace crfkit
