// A data set of segmentations as parts (training/parts.hpp).
//
// Level t holds position t. Of each type c it has the nodes
//
//   going(k)    a segment of type c has k positions up to here and goes on: label `first` or `inside`
//   ending(k)   it ends here: label `single` or `last`; its length and its features score here
//   both for k = K_c + 1, which stands for all lengths above K_c, where the type has no limit
//
// and the inner nodes E(c), "a segment of type c ended before this position", and B(c), "one begins here":
//
//   ending(k) → E(c) → B(c') → going(1), ending(1)        transitions score E(c) → B(c')
//   going(k) → going(k + 1), ending(k + 1)
//
// So a position costs O(K C + C²), and every position has a node with its label: allowed and partial labels,
// marginals, samples and Viterbi are those of any label sequence. (An arc that jumps from the begin of a
// segment to its end would name the factors of all its positions: T K² C of them.)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "data/annotation.hpp"
#include "data/arc_model.hpp"
#include "segments/segment_model.hpp"
#include "training/parts.hpp"

namespace crfkit {

class SegmentParts final : public PartSource {
  public:
    // The weights are those of the layout, then the own ones. Without an annotation all segmentations are
    // allowed. Throws std::invalid_argument where things do not fit together, and, naming the sequence, where
    // no segmentation is possible.
    SegmentParts(std::shared_ptr<const SegmentData> data, std::optional<Annotation> gold, int n_threads);

    std::unique_ptr<PartReader> open() const override;

  private:
    class Reader;
    bool is_possible(std::int64_t n) const;
    void check_possible(int n_threads) const;

    std::shared_ptr<const SegmentData> data_;
    std::optional<Annotation> gold_;
    ArcModel model_;
};

}  // namespace crfkit
