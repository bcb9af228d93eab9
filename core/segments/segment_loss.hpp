// The loss of a data set of segmentations.
#pragma once

#include <memory>

#include "data/annotation.hpp"
#include "segments/segment_model.hpp"
#include "training/data_loss.hpp"

namespace crfkit {

// Throws std::invalid_argument where things do not fit together, or a sequence has no possible segmentation.
std::unique_ptr<DataLoss> segment_loss(std::shared_ptr<const SegmentData> data, Annotation gold,
                                       bool single_precision, int n_threads);

}  // namespace crfkit
