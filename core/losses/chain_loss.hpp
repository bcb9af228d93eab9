// The loss of a chain over a data set, by the backend that suits its design.
#pragma once

#include <memory>

#include "data/annotation.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "training/data_loss.hpp"

namespace crfkit {

// Throws std::invalid_argument if things do not fit together.
std::unique_ptr<DataLoss> chain_loss(std::shared_ptr<const Layout> layout, std::shared_ptr<Design> design,
                                     Annotation gold, bool single_precision, int n_threads);

}  // namespace crfkit
