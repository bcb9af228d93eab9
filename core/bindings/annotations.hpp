// Annotations as Python hands them over.
#pragma once

#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "data/annotation.hpp"

namespace crfkit {

// labels [T]; sets of labels as flat lists, where there are any; weights [N], or none where they do not
// matter.
inline Annotation annotation_of(const Maybe<std::int32_t>& labels, const Maybe<std::int64_t>& set_ptr,
                                const Maybe<std::int32_t>& set_labels, std::vector<double> weights = {}) {
    return {copy(view(labels)), copy(view(set_ptr)), copy(view(set_labels)), std::move(weights)};
}

}  // namespace crfkit
