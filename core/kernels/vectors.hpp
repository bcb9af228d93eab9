// Passes over the long vectors of the optimizers: D weights, gradients, and the pairs of L-BFGS.
#pragma once

#include <cstdint>
#include <type_traits>

namespace crfkit {

// Strengths of a penalty: one for each weight, or the same one for all.
struct Strengths {
    const double* values;  // [D] or [1]
    bool one_each;
};

// The line from x along a direction, inside the orthant given by x and, where x_i = 0, by −pseudo_i.
// `aligned`: penalised weights move only against the pseudo-gradient (Andrew and Gao 2007), that is
// direction_i counts as 0 where direction_i · pseudo_i ≥ 0.
struct OrthantPath {
    const double* x;          // [D]
    const double* direction;  // [D]
    const double* pseudo;     // [D] pseudo-gradient at x
    Strengths l1;
    bool aligned;
};

// A number in half the bits of a float: its sign, its exponent and the first 7 bits of its fraction.
using BFloat16 = std::uint16_t;

// The pairs of L-BFGS as rows of floats or of BFloat16s: s and y of a pair follow each other.
template <class Number>
struct PairRows {
    Number* rows;  // [n_rows, C]
    std::int64_t n_rows;
    std::int64_t n_columns;  // C
};

// Which weight each column of the pairs is: column j < n is weight ids[j], or weight j where ids is null. The
// columns from n on are not in use, and 0.
struct Columns {
    const std::int64_t* ids;
    std::int64_t n;
};

// What a pair is made of: s = x − x_before and y = g − g_before; v is the gradient whose products are wanted.
struct PairSource {
    const double* x;  // [D]
    const double* x_before;
    const double* g;
    const double* g_before;
    const double* v;
    Columns columns;
    double* v_columns;  // [C] out, where columns.ids is given: v in the columns in use
};

// A combination of rows and of the gradient: d = Σ_k coefficients_k rows_k + factor·v.
struct Combination {
    const double* coefficients;  // [n_rows]
    double factor;
    const double* v;  // [C]
    Columns columns;  // of d: out is [D]
};

// Each for elements first … first + n − 1 of its vectors; what is summed is added to `sums`.
template <class Number>
struct PairKernels {
    // Writes s and y, rounded, to rows s_row and s_row + 1. The products of all rows with y and with v, row
    // by row, then s·s: [2·n_rows + 1]
    void (*write_pair)(const PairRows<Number>& pairs, std::int64_t s_row, const PairSource& source,
                       std::int64_t first, std::int64_t n, double* sums);
    // The products of all rows with v, each twice: [n_rows, 2]
    void (*row_products)(const PairRows<Number>& pairs, const double* v, std::int64_t first, std::int64_t n,
                         double* sums);
    // The products of all rows with y and with s of each pair: [n_rows / 2, n_rows, 2]
    void (*gram)(const PairRows<Number>& pairs, std::int64_t first, std::int64_t n, double* sums);
    // out = d at the weights that have a column. {d·v}
    void (*combine)(const PairRows<Number>& pairs, const Combination& combination, double* out,
                    std::int64_t first, std::int64_t n, double* sums);
};

// Likewise. One table per instruction set.
struct VectorKernels {
    // {a·b, a·a}
    void (*products)(const double* a, const double* b, std::int64_t first, std::int64_t n, double* sums);
    // out = x + t·direction; no sums
    void (*step)(const double* x, const double* direction, double t, double* out, std::int64_t first,
                 std::int64_t n, double* sums);
    // {Σ l1_i |x_i|}
    void (*penalty)(const double* x, Strengths l1, std::int64_t first, std::int64_t n, double* sums);
    // gradient += l2 ∘ x. {Σ l2_i x_i²}
    void (*squared_penalty)(const double* x, Strengths l2, double* gradient, std::int64_t first,
                            std::int64_t n, double* sums);
    // out = p, the smallest subgradient of f + Σ l1_i |x_i| at x, where g is the gradient of f. {p·p}
    void (*pseudo_gradient)(const double* x, const double* g, Strengths l1, double* out, std::int64_t first,
                            std::int64_t n, double* sums);
    // out = z = x + t·direction, where penalised weights that would leave the orthant become 0.
    // {Σ l1_i |z_i|, pseudo·(z − x)}
    void (*orthant_step)(const OrthantPath& path, double t, double* out, std::int64_t first, std::int64_t n,
                         double* sums);
    PairKernels<float> single_pairs;
    PairKernels<BFloat16> half_pairs;
};

// The fastest table that this processor can run.
const VectorKernels& vector_kernels();

// Its kernels for pairs that are stored so.
template <class Number>
const PairKernels<Number>& pair_kernels() {
    if constexpr (std::is_same_v<Number, float>)
        return vector_kernels().single_pairs;
    else
        return vector_kernels().half_pairs;
}

}  // namespace crfkit
