// Operations on rows of numbers that elimination on trees and the best tree are made of.
#pragma once

#include <cstdint>

namespace crfkit {

// For doubles, compiled for the processor at hand (tree_kernels.hpp).
struct TreeKernels {
    // out_j = exp(x_j − shift_j), x ≤ shift; 0 for −inf and where it would be subnormal.
    void (*weigh)(const double* x, const double* shift, std::int64_t n, double* out);
    // rows[i, :n] += factors[i] · x, for n_rows rows.
    void (*add)(double* rows, std::int64_t stride, std::int64_t n_rows, const double* factors,
                const double* x, std::int64_t n);
    // The same; returns the smallest among the sums that a product of two positive numbers was added to, at
    // most 1.
    double (*add_checked)(double* rows, std::int64_t stride, std::int64_t n_rows, const double* factors,
                          const double* x, std::int64_t n);
    // out_j = constant + Σ_i factors[i] · rows[i, j]
    void (*combine)(const double* rows, std::int64_t stride, std::int64_t n_rows, const double* factors,
                    double constant, std::int64_t n, double* out);
    // The same; returns the smallest among the sums with a positive term, at most 1.
    double (*combine_checked)(const double* rows, std::int64_t stride, std::int64_t n_rows,
                              const double* factors, double constant, std::int64_t n, double* out);
    // out_i = Σ_j rows[i, j] · x_j, for n_rows rows.
    void (*multiply)(const double* rows, std::int64_t stride, std::int64_t n_rows, const double* x,
                     std::int64_t n, double* out);
    // into_j = max(into_j − into_less, from_j − from_less)
    void (*merge)(double* into, double into_less, const double* from, double from_less, std::int64_t n);
    // The place of the first largest of x_0 … x_{n−1}, n ≥ 1.
    std::int64_t (*largest)(const double* x, std::int64_t n);
};

// The fastest table that this processor can run.
const TreeKernels& tree_kernels();

}  // namespace crfkit
