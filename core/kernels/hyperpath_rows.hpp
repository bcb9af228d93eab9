// Operations on rows of numbers that sums over hyperpaths are made of.
#pragma once

#include <cstdint>

namespace crfkit {

// For doubles, compiled for the processor at hand (hyperpath_kernels.hpp).
struct HyperpathKernels {
    // out_j = exp(x_j), 0 for −inf, where all other x lie within −bound … bound, and bound is at most 700.
    // False, and out is undefined, where one does not.
    bool (*weigh)(const double* x, std::int64_t n, double bound, double* out);
};

// The fastest table that this processor can run.
const HyperpathKernels& hyperpath_kernels();

}  // namespace crfkit
