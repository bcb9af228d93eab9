// Operations on blocks of tables, for sums and maxima over the configurations of a clique.
#pragma once

#include <cstdint>

namespace crfkit {

// For doubles, compiled for the processor at hand (table_kernels.hpp).
struct TableKernels {
    // x_j ·= y_j
    void (*multiply)(double* x, const double* y, std::int64_t n);
    // x_j ·= y[places_j]
    void (*multiply_listed)(double* x, const double* y, const std::int32_t* places, std::int64_t n);
    // x_j ·= f
    void (*scale)(double* x, double f, std::int64_t n);
    // x_j += y_j
    void (*add)(double* x, const double* y, std::int64_t n);
    // x_j += y[places_j]
    void (*add_listed)(double* x, const double* y, const std::int32_t* places, std::int64_t n);
    // x_j += f
    void (*shift)(double* x, double f, std::int64_t n);
    // x_j += a_j · b_j
    void (*add_product)(double* x, const double* a, const double* b, std::int64_t n);
    // x[places_j] += y_j
    void (*scatter)(double* x, const double* y, const std::int32_t* places, std::int64_t n);
    // Σ_j x_j
    double (*sum)(const double* x, std::int64_t n);
    // x_j = max(x_j, y_j)
    void (*raise)(double* x, const double* y, std::int64_t n);
    // x_j = exp(x_j), x ≤ 0 but for rounding; 0 for −inf and where it would be subnormal.
    void (*exponentiate)(double* x, std::int64_t n);
    // The largest, and the smallest of the positive, of x; 0 and +inf if there is none.
    void (*range)(const double* x, std::int64_t n, double* largest, double* smallest);
};

// The fastest table that this processor can run.
const TableKernels& table_kernels();

}  // namespace crfkit
