#include "trees/arc_weights.hpp"

#include <stdexcept>
#include <utility>

namespace crfkit {

ArcWeights::ArcWeights(std::shared_ptr<const ArcLayout> layout, const double* w)
    : layout_(std::move(layout)),
      arcs_(layout_->arc_keys, [&](std::size_t feature) { return w[feature]; }),
      labels_(layout_->label_keys,
              [&](std::size_t feature) {
                  return Range{static_cast<std::uint32_t>(layout_->pair_ptr[feature]),
                               static_cast<std::uint32_t>(layout_->pair_ptr[feature + 1])};
              }),
      of_labels_(static_cast<std::int64_t>(layout_->pair_labels.size())),
      of_vectors_(w + layout_->first_vector_weight(), w + layout_->n_weights()) {
    if (of_labels_.size() >> 32) throw std::invalid_argument("there are too many weights");
    for (std::int64_t i = 0; i < of_labels_.size(); ++i)
        of_labels_[i] = {w[layout_->n_arc_features() + i], layout_->pair_labels[static_cast<std::size_t>(i)]};
}

}  // namespace crfkit
