// The features of positions as flat lists of ids.
#pragma once

#include <cstdint>
#include <vector>

namespace crfkit {

// Position i has ids[position_ptr[i] : position_ptr[i + 1]].
struct FeatureArrays {
    std::vector<std::int64_t> position_ptr{0};  // [T + 1]
    std::vector<std::int32_t> ids;              // [nnz]
    std::vector<double> values;                 // [nnz], or empty while every value is 1
};

}  // namespace crfkit
