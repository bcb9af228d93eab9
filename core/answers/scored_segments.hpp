// The questions on a data set of segmentations: the best labels, marginals and log Z by passes for all types
// at once, all others by the path engine.
#pragma once

#include <memory>
#include <vector>

#include "answers/scored_parts.hpp"
#include "data/arc_model.hpp"
#include "segments/segment_parts.hpp"
#include "segments/segment_weights.hpp"

namespace crfkit {

// Features of transitions are left to ScoredParts: the passes have one table of transitions.
class ScoredSegments final : public ScoredParts {
  public:
    // The weights w [D] are those of the parts.
    ScoredSegments(std::shared_ptr<const SegmentData> data, std::shared_ptr<const SegmentParts> parts,
                   std::vector<double> w);

  protected:
    std::unique_ptr<ScoredSequence> reader() const override;
    // By the path engine.
    std::unique_ptr<ScoredSequence> explaining_reader() const override { return ScoredParts::reader(); }

  private:
    class Reader;

    std::shared_ptr<const SegmentData> data_;
    ArcModel arcs_;
    SegmentWeights segments_;
    bool near_;  // whether the weights of segments suit scaled messages
};

}  // namespace crfkit
