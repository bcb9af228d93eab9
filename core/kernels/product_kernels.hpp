// Sums of outer products of messages, for the expectations of transitions. Included only by kernels.cpp.
#pragma once

#include <cstdint>

#include "base/simd.hpp"
#include "kernels/kernels.hpp"

namespace crfkit::CRFKIT_ISA {

// Σ_k left_k ⊗ right_k over TERMS pairs of rows at each position. ROWS × NV accumulators stay in registers
// while t runs over the positions.
template <class Real, int TERMS, int ROWS, int NV>
inline void add_products_tile(const Real* const* left, const Real* const* right, std::int64_t row,
                              std::int64_t column, std::int64_t n, std::int32_t stride, Real* out) {
    constexpr int lanes = Lanes<Real>::count;
    out += row * stride + column;
    Vector<Real> sums[ROWS][NV];
    CRFKIT_UNROLL
    for (int i = 0; i < ROWS * NV; ++i) sums[i / NV][i % NV] = load(out + i / NV * stride + i % NV * lanes);
    for (std::int64_t t = 0; t < n; ++t) {
        CRFKIT_UNROLL
        for (int k = 0; k < TERMS; ++k) {
            const Real* rows = left[k] + t * stride + row;
            Vector<Real> columns[NV];
            CRFKIT_UNROLL
            for (int j = 0; j < NV; ++j) columns[j] = load(right[k] + t * stride + column + j * lanes);
            CRFKIT_UNROLL
            for (int i = 0; i < ROWS; ++i) {
                const Vector<Real> factor = broadcast(rows[i]);
                CRFKIT_UNROLL
                for (int j = 0; j < NV; ++j) sums[i][j] += factor * columns[j];
            }
        }
    }
    CRFKIT_UNROLL
    for (int i = 0; i < ROWS * NV; ++i)
        store<Real>(out + i / NV * stride + i % NV * lanes, sums[i / NV][i % NV]);
}

template <class Real, int TERMS>
void add_all_products(const Real* const* left, const Real* const* right, std::int64_t n,
                      std::int32_t n_labels, std::int32_t stride, Real* out) {
    constexpr int lanes = Lanes<Real>::count;
    for (std::int32_t column = 0; column < stride;) {
        const std::int32_t n_vectors = (stride - column) / lanes;
        const int width = n_vectors >= 4 ? 4 : n_vectors >= 3 ? 3 : n_vectors >= 2 ? 2 : 1;
        for (std::int32_t row = 0; row < n_labels; row += width <= 2 ? 8 : 4) {
            switch (width) {
                case 4:
                    add_products_tile<Real, TERMS, 4, 4>(left, right, row, column, n, stride, out);
                    break;
                case 3:
                    add_products_tile<Real, TERMS, 4, 3>(left, right, row, column, n, stride, out);
                    break;
                case 2:
                    add_products_tile<Real, TERMS, 8, 2>(left, right, row, column, n, stride, out);
                    break;
                default:
                    add_products_tile<Real, TERMS, 8, 1>(left, right, row, column, n, stride, out);
                    break;
            }
        }
        column += width * lanes;
    }
}

template <class Real>
void add_products(const Real* left, const Real* right, std::int64_t n, std::int32_t n_labels,
                  std::int32_t stride, Real* out) {
    add_all_products<Real, 1>(&left, &right, n, n_labels, stride, out);
}

template <class Real>
void add_changes(const Messages<Real>& m, const HessianVectors<Real>& d, std::int64_t t, std::int64_t n,
                 std::int32_t n_labels, std::int32_t stride, Real* out) {
    const std::int64_t here = t * stride, before = here - stride;
    const Real* left[] = {m.forward + before, d.forward + before};
    const Real* right[] = {d.pushed + here, m.pushed + here};
    add_all_products<Real, 2>(left, right, n, n_labels, stride, out);
}

}  // namespace crfkit::CRFKIT_ISA
