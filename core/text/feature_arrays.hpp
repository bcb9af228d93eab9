// The features of sites as flat lists of ids.
#pragma once

#include <cstdint>
#include <vector>

namespace crfkit {

// Site i has ids[site_ptr[i] : site_ptr[i + 1]].
struct FeatureArrays {
    std::vector<std::int64_t> site_ptr{0};  // [T + 1]
    std::vector<std::int32_t> ids;          // [nnz]
    std::vector<double> values;             // [nnz], or empty while every value is 1
};

}  // namespace crfkit
