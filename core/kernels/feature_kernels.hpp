// Φ w and Φᵀ r for the positions of a sequence. Included only by kernels.cpp.
#pragma once

#include <cstdint>

#include "base/simd.hpp"
#include "kernels/kernels.hpp"

namespace crfkit::CRFKIT_ISA {

inline std::int64_t smaller_of(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// Rows and single weights are read, and their sums written, here and there in tables that are larger than the
// caches near the processor. So they are fetched while those so many before them are worked on.
inline constexpr std::int64_t kRowsAhead = 16, kEntriesAhead = 32, kSumsAhead = 8;

template <class Number>
inline void fetch(const Number* numbers, int n) {
    for (int i = 0; i < n; i += 64 / sizeof(Number)) __builtin_prefetch(numbers + i);
}
// To be written: another thread may have written it last.
inline void fetch_to_write(const double* numbers, int n) {
    for (int i = 0; i < n; i += 64 / sizeof(double)) __builtin_prefetch(numbers + i, 1);
}

// One tile of NV vectors of a position's row: base + Σ value · row.
template <class Real, int NV>
inline void sum_weight_rows(const Real* rows, std::int32_t stride, const std::int32_t* ids,
                            const Real* values, std::int64_t n, const Real* base, Real* out) {
    constexpr int lanes = Lanes<Real>::count;
    Vector<Real> sums[NV];
    for (int j = 0; j < NV; ++j) sums[j] = load(base + j * lanes);
    if (values) {
        for (std::int64_t i = 0; i < n; ++i) {
            const Real* row = rows + static_cast<std::int64_t>(ids[i]) * stride;
            const Vector<Real> factor = broadcast(values[i]);
            for (int j = 0; j < NV; ++j) sums[j] += factor * load(row + j * lanes);
        }
    } else {
        for (std::int64_t i = 0; i < n; ++i) {
            const Real* row = rows + static_cast<std::int64_t>(ids[i]) * stride;
            for (int j = 0; j < NV; ++j) sums[j] += load(row + j * lanes);
        }
    }
    for (int j = 0; j < NV; ++j) store<Real>(out + j * lanes, sums[j]);
}

// A position's whole row: base + Σ value · row over n rows.
template <class Real>
inline void sum_rows_of_position(const Real* rows, std::int32_t stride, const std::int32_t* ids,
                                 const Real* values, std::int64_t n, const Real* base, Real* out) {
    constexpr int lanes = Lanes<Real>::count;
    std::int32_t c = 0;
    for (; c + 4 * lanes <= stride; c += 4 * lanes)
        sum_weight_rows<Real, 4>(rows + c, stride, ids, values, n, base + c, out + c);
    switch ((stride - c) / lanes) {
        case 3:
            return sum_weight_rows<Real, 3>(rows + c, stride, ids, values, n, base + c, out + c);
        case 2:
            return sum_weight_rows<Real, 2>(rows + c, stride, ids, values, n, base + c, out + c);
        case 1:
            return sum_weight_rows<Real, 1>(rows + c, stride, ids, values, n, base + c, out + c);
        default:
            return;
    }
}

// Rows of NV vectors: a position's row stays in registers while rows of weights are added; then single
// weights are added to it where it is stored. kValues: whether features have values, those with rows and
// those with single weights alike.
template <class Real, int NV, bool kValues>
void score_narrow_positions(const PositionFeatures<Real>& f, std::int64_t n_positions, const Real* base,
                            Real* states) {
    constexpr int lanes = Lanes<Real>::count, stride = NV * lanes;
    const std::int64_t n_rows = f.row_ptr[n_positions], n_entries = f.entry_ptr[n_positions];
    for (std::int64_t t = 0; t < n_positions; ++t) {
        Vector<Real> sums[NV];
        for (int j = 0; j < NV; ++j) sums[j] = load(base + j * lanes);
        const std::int64_t end_of_rows = f.row_ptr[t + 1], end_of_entries = f.entry_ptr[t + 1];
        const std::int32_t* rows_ahead = f.row_ids + smaller_of(kRowsAhead, n_rows - end_of_rows);
        const std::int32_t* entries_ahead =
            f.entry_ids + smaller_of(kEntriesAhead, n_entries - end_of_entries);
        for (std::int64_t i = f.row_ptr[t]; i < end_of_rows; ++i) {
            fetch(f.rows + static_cast<std::int64_t>(rows_ahead[i]) * stride, stride);
            const Real* row = f.rows + static_cast<std::int64_t>(f.row_ids[i]) * stride;
            if constexpr (kValues) {
                const Vector<Real> factor = broadcast(f.row_values[i]);
                for (int j = 0; j < NV; ++j) sums[j] += factor * load(row + j * lanes);
            } else {
                for (int j = 0; j < NV; ++j) sums[j] += load(row + j * lanes);
            }
        }
        Real* out = states + t * stride;
        for (int j = 0; j < NV; ++j) store<Real>(out + j * lanes, sums[j]);
        for (std::int64_t i = f.entry_ptr[t]; i < end_of_entries; ++i) {
            __builtin_prefetch(f.weights + entries_ahead[i]);
            const Real weight = f.weights[f.entry_ids[i]];
            if constexpr (kValues)
                out[f.entry_labels[i]] += f.entry_values[i] * weight;
            else
                out[f.entry_labels[i]] += weight;
        }
    }
}

template <class Real, int NV>
void score_narrow_positions(const PositionFeatures<Real>& f, std::int64_t n_positions, const Real* base,
                            Real* states) {
    if (f.row_values || f.entry_values)
        score_narrow_positions<Real, NV, true>(f, n_positions, base, states);
    else
        score_narrow_positions<Real, NV, false>(f, n_positions, base, states);
}

template <class Real>
void score_positions(const PositionFeatures<Real>& f, std::int64_t n_positions, std::int32_t stride,
                     const Real* base, Real* states) {
    switch (stride / Lanes<Real>::count) {
        case 1:
            return score_narrow_positions<Real, 1>(f, n_positions, base, states);
        case 2:
            return score_narrow_positions<Real, 2>(f, n_positions, base, states);
        case 3:
            return score_narrow_positions<Real, 3>(f, n_positions, base, states);
        default:
            break;
    }
    for (std::int64_t t = 0; t < n_positions; ++t) {
        const std::int64_t first = f.row_ptr[t], n = f.row_ptr[t + 1] - first;
        Real* out = states + t * stride;
        sum_rows_of_position(f.rows, stride, f.row_ids + first, f.row_values ? f.row_values + first : nullptr,
                             n, base, out);
        for (std::int64_t i = f.entry_ptr[t]; i < f.entry_ptr[t + 1]; ++i) {
            const Real weight = f.weights[f.entry_ids[i]];
            out[f.entry_labels[i]] += f.entry_values ? f.entry_values[i] * weight : weight;
        }
    }
}

template <class Real>
void score_listed(const ListedFeatures<Real>& f, std::int64_t n_positions, std::int32_t stride,
                  const Real* base, Real* states) {
    constexpr std::int64_t most = 64;   // features looked at in one go
    constexpr std::int64_t ahead = 32;  // features whose weights are being fetched
    std::int32_t rows[most];
    const FeatureWeights<Real>* singles[most];
    Real row_values[most], single_values[most];
    const std::int64_t n_ids = f.position_ptr[n_positions];
    for (std::int64_t t = 0; t < n_positions; ++t) {
        Real* out = states + t * stride;
        std::int64_t begin = f.position_ptr[t];
        do {
            const std::int64_t end = smaller_of(begin + most, f.position_ptr[t + 1]);
            std::int64_t n_rows = 0, n_singles = 0;
            for (std::int64_t i = begin; i < end;
                 ++i) {  // without a branch: which is which looks like chance
                __builtin_prefetch(f.features + f.ids[smaller_of(i + ahead, n_ids - 1)]);
                const FeatureWeights<Real>& feature = f.features[f.ids[i]];
                const bool is_row = feature.n < 0;
                rows[n_rows] = feature.first;
                singles[n_singles] = &feature;
                row_values[n_rows] = single_values[n_singles] = f.values ? f.values[i] : Real(1);
                n_rows += is_row;
                n_singles += !is_row;
            }
            sum_rows_of_position(f.rows, stride, rows, f.values ? row_values : nullptr, n_rows,
                                 begin == f.position_ptr[t] ? base : out, out);
            for (std::int64_t i = 0; i < n_singles; ++i) {
                const auto [weight, first, n] = *singles[i];
                if (n == 1) {
                    out[first] += single_values[i] * weight;
                    continue;
                }
                for (std::int32_t p = first; p < first + n; ++p)
                    out[f.pair_labels[p]] += single_values[i] * f.weights[p];
            }
            begin = end;
        } while (begin < f.position_ptr[t + 1]);
    }
}

template <class Real>
void score_dense(const Real* x, std::int64_t n_positions, std::int64_t n_columns, const Real* weights,
                 std::int32_t stride, Real* states) {
    for (std::int64_t t = 0; t < n_positions; ++t)
        for (std::int64_t k = 0; k < n_columns; ++k) {
            const Real value = x[t * n_columns + k];
            if (value == 0) continue;
            const Vector<Real> factor = broadcast(value);
            for (std::int32_t j = 0; j < stride; j += Lanes<Real>::count)
                store<Real>(states + t * stride + j,
                            load(states + t * stride + j) + factor * load(weights + k * stride + j));
        }
}

// How many terms are added in the kernel's precision before they are added to a double: bounds the rounding
// of features that fire everywhere.
inline constexpr std::int64_t kFlush = 64;

// sums = part, or sums += part, rounded to a grid with this shift.
template <bool kAdd>
inline void move_to_doubles(Vector<double> part, double shift, double* sums) {
    using Unaligned = double __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
    Unaligned* to = reinterpret_cast<Unaligned*>(sums);
    *to = kAdd ? *to + ((part + shift) - shift) : part;
}

template <bool kAdd>
inline void move_to_doubles(Vector<float> part, double shift, double* sums) {
    using Half = float __attribute__((vector_size(kVectorBytes / 2)));
    Half halves[2];
    __builtin_memcpy(halves, &part, sizeof part);
    move_to_doubles<kAdd>(__builtin_convertvector(halves[0], Vector<double>), shift, sums);
    move_to_doubles<kAdd>(__builtin_convertvector(halves[1], Vector<double>), shift,
                          sums + Lanes<double>::count);
}

// Σ value · residuals of at most kFlush positions, NV vectors of each row.
template <class Real, int NV>
inline void sum_some_rows(const PositionLists<Real>& lists, std::int64_t begin, std::int64_t end,
                          const Real* residuals, std::int32_t stride, Vector<Real>* part) {
    constexpr int lanes = Lanes<Real>::count;
    constexpr int sets = NV == 1 ? 4 : NV == 2 ? 2 : 1;  // independent sums hide the latency of additions
    for (int j = 0; j < NV; ++j) part[j] = Vector<Real>{};
    std::int64_t i = begin;
    if (sets > 1 && !lists.values && end - begin >= 2 * sets) {
        Vector<Real> more[sets][NV] = {};
        for (; i + sets <= end; i += sets)
            for (int k = 0; k < sets; ++k) {
                const Real* row = residuals + static_cast<std::int64_t>(lists.positions[i + k]) * stride;
                for (int j = 0; j < NV; ++j) more[k][j] += load(row + j * lanes);
            }
        for (int k = 0; k < sets; ++k)
            for (int j = 0; j < NV; ++j) part[j] += more[k][j];
    }
    for (; i < end; ++i) {
        const Real* row = residuals + static_cast<std::int64_t>(lists.positions[i]) * stride;
        if (lists.values) {
            const Vector<Real> factor = broadcast(lists.values[i]);
            for (int j = 0; j < NV; ++j) part[j] += factor * load(row + j * lanes);
        } else {
            for (int j = 0; j < NV; ++j) part[j] += load(row + j * lanes);
        }
    }
}

// The whole sum of a list is moved at once: it has the same bits wherever it goes.
template <class Real, int NV, bool kAdd>
inline void sum_residual_rows(const PositionLists<Real>& lists, std::int64_t list, const Real* residuals,
                              std::int32_t stride, SumGrid grid, double* sums) {
    constexpr int lanes = Lanes<Real>::count;
    std::int64_t begin = lists.ptr[list];
    const std::int64_t last = lists.ptr[list + 1];
    Vector<Real> part[NV];
    if (last - begin <= kFlush) {
        sum_some_rows<Real, NV>(lists, begin, last, residuals, stride, part);
        for (int j = 0; j < NV; ++j) move_to_doubles<kAdd>(part[j], grid.shift(), sums + j * lanes);
        return;
    }
    double total[NV * lanes] = {};
    for (; begin < last; begin += kFlush) {
        sum_some_rows<Real, NV>(lists, begin, smaller_of(begin + kFlush, last), residuals, stride, part);
        for (int j = 0; j < NV; ++j) move_to_doubles<true>(part[j], 0.0, total + j * lanes);
    }
    for (int i = 0; i < NV * lanes; ++i) sums[i] = kAdd ? sums[i] + grid.round(total[i]) : total[i];
}

// Tiles of NV vectors for all lists, so that the width is known inside the loop over lists.
template <class Real, int NV>
inline void sum_rows_tile(const PositionLists<Real>& lists, std::int64_t first, std::int64_t last,
                          const std::int32_t* targets, const Real* residuals, std::int32_t stride,
                          SumGrid grid, double* table) {
    if (targets)
        for (std::int64_t list = first; list < last; ++list) {
            const std::int64_t ahead = targets[smaller_of(list + kSumsAhead, last - 1)];
            fetch_to_write(table + ahead * stride, NV * Lanes<Real>::count);
            sum_residual_rows<Real, NV, true>(lists, list, residuals, stride, grid,
                                              table + static_cast<std::int64_t>(targets[list]) * stride);
        }
    else
        for (std::int64_t list = first; list < last; ++list)
            sum_residual_rows<Real, NV, false>(lists, list, residuals, stride, grid,
                                               table + (list - first) * stride);
}

template <class Real>
void sum_rows(const PositionLists<Real>& lists, std::int64_t first, std::int64_t last,
              const std::int32_t* targets, const Real* residuals, std::int32_t stride, SumGrid grid,
              double* table) {
    constexpr int lanes = Lanes<Real>::count;
    std::int32_t c = 0;
    for (; c + 4 * lanes <= stride; c += 4 * lanes)
        sum_rows_tile<Real, 4>(lists, first, last, targets, residuals + c, stride, grid, table + c);
    switch ((stride - c) / lanes) {
        case 3:
            return sum_rows_tile<Real, 3>(lists, first, last, targets, residuals + c, stride, grid,
                                          table + c);
        case 2:
            return sum_rows_tile<Real, 2>(lists, first, last, targets, residuals + c, stride, grid,
                                          table + c);
        case 1:
            return sum_rows_tile<Real, 1>(lists, first, last, targets, residuals + c, stride, grid,
                                          table + c);
        default:
            return;
    }
}

template <class Real>
void sum_entries(const PositionLists<Real>& lists, std::int64_t first, std::int64_t last,
                 const std::int32_t* targets, const std::int32_t* labels, const Real* residuals,
                 std::int32_t stride, SumGrid grid, double* sums) {
    for (std::int64_t list = first; list < last; ++list) {
        if (targets) fetch_to_write(sums + targets[smaller_of(list + kEntriesAhead, last - 1)], 1);
        double total = 0;
        const Real* column = residuals + labels[list];
        for (std::int64_t i = lists.ptr[list]; i < lists.ptr[list + 1]; ++i) {
            const Real r = column[static_cast<std::int64_t>(lists.positions[i]) * stride];
            total += lists.values ? lists.values[i] * r : r;
        }
        if (targets)
            sums[targets[list]] += grid.round(total);
        else
            sums[list - first] = total;
    }
}

template <class Real>
void sum_dense(const Real* x, std::int64_t n, std::int64_t n_columns, std::int64_t first, std::int64_t last,
               const Real* residuals, std::int32_t stride, double* sums) {
    constexpr int lanes = Lanes<Real>::count;
    for (std::int64_t begin = 0; begin < n; begin += kFlush) {  // a tile of residuals that stays in the cache
        const std::int64_t end = begin + kFlush < n ? begin + kFlush : n;
        for (std::int64_t k = first; k < last; ++k)
            for (std::int32_t c = 0; c < stride; c += lanes) {
                Vector<Real> part{};
                for (std::int64_t t = begin; t < end; ++t)
                    part += broadcast(x[t * n_columns + k]) * load(residuals + t * stride + c);
                for (int i = 0; i < lanes; ++i) sums[k * stride + c + i] += static_cast<double>(part[i]);
            }
    }
}

}  // namespace crfkit::CRFKIT_ISA
