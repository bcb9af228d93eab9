// Kernels of the optimizers: passes over a stretch of long vectors. Included only by kernels.cpp, like
// simd.hpp.
//
// Sums run over eight lanes whatever the instruction set, and stretches begin at fixed places: which thread
// works on a stretch changes no bit. Work goes in tiles that stay in the first-level cache; memory is what
// these passes wait for.
#pragma once

#include <cstdint>

#include "base/simd.hpp"
#include "kernels/vectors.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace crfkit::CRFKIT_ISA {

inline constexpr std::int64_t kTile = 1024;

using Doubles = double __attribute__((vector_size(64), aligned(8), may_alias));
using Floats = float __attribute__((vector_size(32), aligned(4), may_alias));
using Halves = BFloat16 __attribute__((vector_size(16), aligned(2), may_alias));

inline Doubles load8(const double* p) { return *reinterpret_cast<const Doubles*>(p); }
inline Doubles load8(const float* p) {
    return __builtin_convertvector(*reinterpret_cast<const Floats*>(p), Doubles);
}
#if defined(__AVX2__)  // compilers write the plain form below in many small pieces
inline Doubles load8(const BFloat16* p) {
    const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m256 floats = _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
#if defined(__AVX512F__)
    return _mm512_cvtps_pd(floats);
#else
    const __m256d halves[2] = {_mm256_cvtps_pd(_mm256_castps256_ps128(floats)),
                               _mm256_cvtps_pd(_mm256_extractf128_ps(floats, 1))};
    return __builtin_bit_cast(Doubles, halves);
#endif
}
#else
inline Doubles load8(const BFloat16* p) {
    using Bits = std::uint32_t __attribute__((vector_size(32)));
    const Bits bits = __builtin_convertvector(*reinterpret_cast<const Halves*>(p), Bits) << 16;
    return __builtin_convertvector(reinterpret_cast<float __attribute__((vector_size(32)))>(bits), Doubles);
}
#endif

inline double widened(float x) { return x; }
inline double widened(BFloat16 x) { return __builtin_bit_cast(float, static_cast<std::uint32_t>(x) << 16); }

// To the nearest, ties to even; NaN stays NaN.
inline void round_to(float& out, double x) { out = static_cast<float>(x); }
inline void round_to(BFloat16& out, double x) {
    const auto bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(x));
    const std::uint32_t nearest = bits + 0x7FFF + (bits >> 16 & 1);
    out = static_cast<BFloat16>((x == x ? nearest : bits | 0x400000) >> 16);
}
inline void store8(double* p, Doubles v) { *reinterpret_cast<Doubles*>(p) = v; }

inline double sum8(Doubles v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

inline std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// Σ a_i b_i
inline double dot(const double* a, const double* b, std::int64_t n) {
    Doubles even{}, odd{};
    std::int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        even += load8(a + i) * load8(b + i);
        odd += load8(a + i + 8) * load8(b + i + 8);
    }
    double rest = 0.0;
    for (; i < n; ++i) rest += a[i] * b[i];
    return sum8(even + odd) + rest;
}

// The strengths of a tile: where they are stored, or copies of the one for all.
struct TileStrengths {
    explicit TileStrengths(Strengths given) : given(given) {
        if (!given.one_each)
            for (double& value : same) value = given.values[0];
    }
    const double* at(std::int64_t i) const { return given.one_each ? given.values + i : same; }

    Strengths given;
    double same[kTile];
};

inline void products(const double* a, const double* b, std::int64_t first, std::int64_t n, double* sums) {
    for (std::int64_t i = first; i < first + n; i += kTile) {
        const std::int64_t width = smaller(kTile, first + n - i);
        sums[0] += dot(a + i, b + i, width);
        sums[1] += dot(a + i, a + i, width);
    }
}

inline void step(const double* x, const double* direction, double t, double* out, std::int64_t first,
                 std::int64_t n, double*) {
    for (std::int64_t i = first; i < first + n; ++i) out[i] = x[i] + t * direction[i];
}

inline double absolute(double x) { return x < 0.0 ? -x : x; }

inline void penalty(const double* x, Strengths l1, std::int64_t first, std::int64_t n, double* sums) {
    const TileStrengths strengths(l1);
    double size[kTile];
    for (std::int64_t tile = first; tile < first + n; tile += kTile) {
        const std::int64_t width = smaller(kTile, first + n - tile);
        for (std::int64_t i = 0; i < width; ++i) size[i] = absolute(x[tile + i]);
        sums[0] += dot(size, strengths.at(tile), width);
    }
}

inline void squared_penalty(const double* x, Strengths l2, double* gradient, std::int64_t first,
                            std::int64_t n, double* sums) {
    const TileStrengths strengths(l2);
    double slope[kTile];
    for (std::int64_t tile = first; tile < first + n; tile += kTile) {
        const std::int64_t width = smaller(kTile, first + n - tile);
        const double* l2_here = strengths.at(tile);
        for (std::int64_t i = 0; i < width; ++i) {
            slope[i] = l2_here[i] * x[tile + i];
            gradient[tile + i] += slope[i];
        }
        sums[0] += dot(slope, x + tile, width);
    }
}

// p_i = g_i ± l1_i by the sign of x_i; where x_i = 0, g_i shrunk towards 0 by l1_i.
inline void pseudo_gradient(const double* x, const double* g, Strengths l1, double* out, std::int64_t first,
                            std::int64_t n, double* sums) {
    const TileStrengths strengths(l1);
    for (std::int64_t tile = first; tile < first + n; tile += kTile) {
        const std::int64_t width = smaller(kTile, first + n - tile);
        const double* l1_here = strengths.at(tile);
        for (std::int64_t i = 0; i < width; ++i) {
            const double up = g[tile + i] + l1_here[i], down = g[tile + i] - l1_here[i], at = x[tile + i];
            double shrunk = up >= 0.0 ? 0.0 : up;  // NaN stays NaN
            shrunk = down > 0.0 ? down : shrunk;
            out[tile + i] = at > 0.0 ? up : at < 0.0 ? down : shrunk;
        }
        sums[0] += dot(out + tile, out + tile, width);
    }
}

// z_i = x_i + t·d_i, but 0 where l1_i > 0 and z_i is not on the side of x_i, or of −p_i where x_i = 0. With
// an aligned path z_i = x_i where l1_i > 0 and d_i p_i ≥ 0.
inline void orthant_step(const OrthantPath& path, double t, double* out, std::int64_t first, std::int64_t n,
                         double* sums) {
    const TileStrengths strengths(path.l1);
    double size[kTile], move[kTile];
    for (std::int64_t tile = first; tile < first + n; tile += kTile) {
        const std::int64_t width = smaller(kTile, first + n - tile);
        const double *x = path.x + tile, *d = path.direction + tile, *p = path.pseudo + tile;
        const double* l1_here = strengths.at(tile);
        double* z = out + tile;
        for (std::int64_t i = 0; i < width; ++i) {
            const bool stays = path.aligned & (l1_here[i] > 0.0) & (d[i] * p[i] >= 0.0);
            const double moved = x[i] + (stays ? 0.0 : t * d[i]);
            const double side = x[i] == 0.0 ? -p[i] : x[i];
            const double held = moved * side <= 0.0 ? 0.0 : moved;
            z[i] = l1_here[i] > 0.0 ? held : moved;
            size[i] = absolute(z[i]);
            move[i] = z[i] - x[i];
        }
        sums[0] += dot(size, l1_here, width);
        sums[1] += dot(p, move, width);
    }
}

// How many rows go through a tile together: those whose sums stay in registers.
#if defined(__AVX512F__)
inline constexpr int kRowsOfProducts = 4, kRowsOfSum = 8;
#else
inline constexpr int kRowsOfProducts = 2, kRowsOfSum = 4;
#endif

// Calls use(j) for every j = 0, 8, 16, … of whole 16s of a tile, and fetches the same elements of the next
// tile. Returns where the rest begins.
template <int n_rows, class Number, class Use>
inline std::int64_t each_eight(const Number* row, std::int64_t apart, std::int64_t width, Use use) {
    constexpr std::int64_t line = 64 / sizeof(Number);
    std::int64_t i = 0;
    for (; i + line <= width; i += line) {
        for (int k = 0; k < n_rows; ++k) __builtin_prefetch(row + k * apart + i + kTile);
        for (std::int64_t j = i; j < i + line; j += 8) use(j);
    }
    for (; i + 16 <= width; i += 16)
        for (std::int64_t j = i; j < i + 16; j += 8) use(j);
    return i;
}

// sums[2r] += row_r · y, sums[2r + 1] += row_r · v over one tile, for n_rows rows that lie `apart` from each
// other.
template <int n_rows, class Number>
inline void add_products_of_rows(const Number* row, std::int64_t apart, std::int64_t width, const double* y,
                                 const double* v, double* sums) {
    Doubles with_y[n_rows] = {}, with_v[n_rows] = {};
    const std::int64_t rest = each_eight<n_rows>(row, apart, width, [&](std::int64_t j) {
        const Doubles y8 = load8(y + j), v8 = load8(v + j);
        CRFKIT_UNROLL
        for (int k = 0; k < n_rows; ++k) {
            const Doubles numbers = load8(row + k * apart + j);
            with_y[k] += numbers * y8;
            with_v[k] += numbers * v8;
        }
    });
    for (int k = 0; k < n_rows; ++k) {
        double rest_y = 0.0, rest_v = 0.0;
        for (std::int64_t i = rest; i < width; ++i) {
            rest_y += widened(row[k * apart + i]) * y[i];
            rest_v += widened(row[k * apart + i]) * v[i];
        }
        sums[2 * k] += sum8(with_y[k]) + rest_y;
        sums[2 * k + 1] += sum8(with_v[k]) + rest_v;
    }
}

// The same for all rows.
template <class Number>
inline void add_row_products(const Number* tile, const PairRows<Number>& pairs, std::int64_t width,
                             const double* y, const double* v, double* sums) {
    const std::int64_t apart = pairs.n_columns;
    std::int64_t row = 0;
    for (; row + kRowsOfProducts <= pairs.n_rows; row += kRowsOfProducts)
        add_products_of_rows<kRowsOfProducts>(tile + row * apart, apart, width, y, v, sums + 2 * row);
    for (; row < pairs.n_rows; row += 2)
        add_products_of_rows<2>(tile + row * apart, apart, width, y, v, sums + 2 * row);
}

// s, y and v of one tile of columns.
template <class Number>
inline void write_columns(const PairSource& source, std::int64_t tile, std::int64_t width, Number* s,
                          Number* y) {
    const std::int64_t* ids = source.columns.ids + tile;
    double* v = source.v_columns + tile;
    for (std::int64_t i = 0; i < width; ++i) {
        const std::int64_t k = ids[i];
        round_to(s[i], source.x[k] - source.x_before[k]);
        round_to(y[i], source.g[k] - source.g_before[k]);
        v[i] = source.v[k];
    }
}

template <class Number>
inline void write_pair(const PairRows<Number>& pairs, std::int64_t s_row, const PairSource& source,
                       std::int64_t first, std::int64_t n, double* sums) {
    double s[kTile], y[kTile];  // as rounded in the rows
    for (std::int64_t tile = first; tile < first + n; tile += kTile) {
        const std::int64_t width = smaller(kTile, first + n - tile);
        Number *s_out = pairs.rows + s_row * pairs.n_columns + tile, *y_out = s_out + pairs.n_columns;
        if (source.columns.ids) {
            write_columns(source, tile, width, s_out, y_out);
        } else {
            for (std::int64_t i = 0; i < width; ++i) {
                round_to(s_out[i], source.x[tile + i] - source.x_before[tile + i]);
                round_to(y_out[i], source.g[tile + i] - source.g_before[tile + i]);
            }
        }
        for (std::int64_t i = 0; i < width; ++i) {
            s[i] = widened(s_out[i]);
            y[i] = widened(y_out[i]);
        }
        const double* v = source.columns.ids ? source.v_columns : source.v;
        add_row_products(pairs.rows + tile, pairs, width, y, v + tile, sums);
        sums[2 * pairs.n_rows] += dot(s, s, width);
    }
}

// As above with y = v, so that every sum comes twice: rare enough not to deserve a loop of its own.
template <class Number>
inline void row_products(const PairRows<Number>& pairs, const double* v, std::int64_t first, std::int64_t n,
                         double* sums) {
    for (std::int64_t tile = first; tile < first + n; tile += kTile) {
        const std::int64_t width = smaller(kTile, first + n - tile);
        add_row_products(pairs.rows + tile, pairs, width, v + tile, v + tile, sums);
    }
}

// For each pair the products as of write_pair, with v = s.
template <class Number>
inline void gram(const PairRows<Number>& pairs, std::int64_t first, std::int64_t n, double* sums) {
    double s[kTile], y[kTile];
    for (std::int64_t tile = first; tile < first + n; tile += kTile) {
        const std::int64_t width = smaller(kTile, first + n - tile);
        for (std::int64_t row = 0; row < pairs.n_rows; row += 2) {
            const Number *from = pairs.rows + row * pairs.n_columns + tile, *next = from + pairs.n_columns;
            for (std::int64_t i = 0; i < width; ++i) {
                s[i] = widened(from[i]);
                y[i] = widened(next[i]);
            }
            add_row_products(pairs.rows + tile, pairs, width, y, s, sums + row * pairs.n_rows);
        }
    }
}

// out += Σ_k c_k row_k over one tile, for n_rows rows that lie `apart` from each other.
template <int n_rows, class Number>
inline void add_rows(const Number* row, std::int64_t apart, const double* c, std::int64_t width,
                     double* out) {
    std::int64_t i = each_eight<n_rows>(row, apart, width, [&](std::int64_t j) {
        Doubles sum = load8(out + j);
        CRFKIT_UNROLL
        for (int k = 0; k < n_rows; ++k) sum += c[k] * load8(row + k * apart + j);
        store8(out + j, sum);
    });
    for (; i < width; ++i)
        for (int k = 0; k < n_rows; ++k) out[i] += c[k] * widened(row[k * apart + i]);
}

template <class Number>
inline void combine(const PairRows<Number>& pairs, const Combination& combination, double* out,
                    std::int64_t first, std::int64_t n, double* sums) {
    double local[kTile];
    for (std::int64_t tile = first; tile < first + n; tile += kTile) {
        const std::int64_t width = smaller(kTile, first + n - tile);
        const double* v = combination.v + tile;
        const Columns& columns = combination.columns;
        double* d = columns.ids ? local : out + tile;
        for (std::int64_t i = 0; i < width; ++i) d[i] = combination.factor * v[i];
        std::int64_t row = 0;
        for (; row + kRowsOfSum <= pairs.n_rows; row += kRowsOfSum)
            add_rows<kRowsOfSum>(pairs.rows + row * pairs.n_columns + tile, pairs.n_columns,
                                 combination.coefficients + row, width, d);
        for (; row < pairs.n_rows; row += 2)
            add_rows<2>(pairs.rows + row * pairs.n_columns + tile, pairs.n_columns,
                        combination.coefficients + row, width, d);
        sums[0] += dot(d, v, width);
        if (columns.ids)
            for (std::int64_t i = 0; i < width; ++i) out[columns.ids[tile + i]] = d[i];
    }
}

}  // namespace crfkit::CRFKIT_ISA
