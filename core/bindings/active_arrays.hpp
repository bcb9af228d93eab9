// What is active on the parts of lattices, as Python hands it over.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include "bindings/arrays.hpp"
#include "lattice/part_features.hpp"

namespace crfkit {

// The arrays of a block, kept alive beside what points into them.
struct ActiveArrays {
    std::optional<Matrix<double>> dense;
    Maybe<std::int64_t> ptr;
    Maybe<std::int32_t> ids;
    Maybe<double> values;
    ActiveFeatures active;
};

inline std::vector<ActiveFeatures> views(const std::vector<const ActiveArrays*>& blocks) {
    std::vector<ActiveFeatures> out;
    for (const ActiveArrays* block : blocks) {
        if (!block) throw std::invalid_argument("active: expected blocks, got None");
        out.push_back(block->active);
    }
    return out;
}

using Blocks = std::vector<const ActiveArrays*>;

}  // namespace crfkit
