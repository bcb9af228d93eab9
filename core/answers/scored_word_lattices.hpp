// The questions on a data set of word lattices: by the path engine. The answer for an arc is whether it is on
// the path (kOnPath) or not (kOffPath).
#pragma once

#include <memory>
#include <vector>

#include "answers/scored_sequences.hpp"
#include "segments/word_lattice.hpp"
#include "segments/word_lattice_parts.hpp"

namespace crfkit {

class ScoredWordLattices final : public ScoredSequences {
  public:
    // w [D]; the data must outlive it.
    ScoredWordLattices(std::shared_ptr<const WordLattices> data, std::vector<double> w);

    std::int32_t n_labels() const override { return 2; }
    // Of the paths of sequence n that pass an arc, for two arcs.
    ExplainedLabels explain_arcs(std::int64_t n, std::int32_t arc, std::int32_t against) const;

  protected:
    std::unique_ptr<ScoredSequence> reader() const override;

  private:
    class Reader;

    WordLatticeParts parts_;
    std::vector<double> w_;
};

}  // namespace crfkit
