// A loss of which some weights are known and stay as they are: scores that are given, as weights of features.
//
//   free(w) = loss(w_0, …, w_{begin−1}, fixed, w_begin, …)        of D − K weights w, with K fixed ones
//
// Value, gradient and Hessian–vector product are those of the loss, without the fixed weights.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "training/data_loss.hpp"

namespace crfkit {

// `fixed` are the weights begin.. of the loss. Throws std::invalid_argument where it has no such weights.
std::shared_ptr<DataLoss> fix_weights(std::shared_ptr<DataLoss> loss, std::int64_t begin,
                                      std::vector<double> fixed);

}  // namespace crfkit
