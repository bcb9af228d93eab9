// The part of a CRFsuite model that some positions need: the first sentences after a file is opened are
// tagged with it, so that opening costs no more than they do.
#pragma once

#include <memory>
#include <vector>

#include "data/layout.hpp"
#include "formats/crfsuite_file.hpp"
#include "text/feature_arrays.hpp"
#include "text/named_positions.hpp"

namespace crfkit {

// A model of its own. Scores, and with them all answers, are those of the whole model.
struct CrfsuitePart {
    std::shared_ptr<const Layout> layout;
    std::vector<double> weights;  // [D]
    FeatureArrays features;       // of the positions; each occurrence of an attribute is a feature
};

// Throws std::invalid_argument where the file is damaged, or has no labels.
CrfsuitePart part_of(const CrfsuiteFile& file, const NamedPositions& positions);

}  // namespace crfkit
