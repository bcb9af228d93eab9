// Operations on blocks of tables, for sums and maxima over the configurations of a clique.
#pragma once

#include <cstdint>

namespace crfkit {

// How a block is read from a table: runs of equal length, one after the other in the block.
struct Runs {
    const std::int32_t* starts;  // [n] where each begins in the table
    std::int64_t n, length;
    bool constant;  // all of a run is one entry of the table; otherwise entries side by side
};

// For doubles, compiled for the processor at hand (table_kernels.hpp).
struct TableKernels {
    // x_j ·= y_j
    void (*multiply)(double* x, const double* y, std::int64_t n);
    // x[run r] ·= the entries of y from starts_r on, or y[starts_r] for all of the run: n runs
    void (*multiply_runs)(double* x, const double* y, const Runs& runs);
    // x_j ·= f
    void (*scale)(double* x, double f, std::int64_t n);
    // x_j += y_j
    void (*add)(double* x, const double* y, std::int64_t n);
    // x[run r] += likewise
    void (*add_runs)(double* x, const double* y, const Runs& runs);
    // x[run r] = likewise
    void (*copy_runs)(double* x, const double* y, const Runs& runs);
    // x_j += f
    void (*shift)(double* x, double f, std::int64_t n);
    // x_j = a_j · b_j
    void (*product)(double* x, const double* a, const double* b, std::int64_t n);
    // x_j += a_j · b_j
    void (*add_product)(double* x, const double* a, const double* b, std::int64_t n);
    // The transpose of copy_runs: adds x to the entries of y that it copies from
    void (*project_runs)(const double* x, double* y, const Runs& runs);
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
