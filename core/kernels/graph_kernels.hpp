// Messages of tables over two variables. Included only by kernels.cpp, like simd.hpp.
#pragma once

#include <cstdint>

#include "base/simd.hpp"
#include "kernels/graph_rows.hpp"
#include "kernels/tree_kernels.hpp"

namespace crfkit::CRFKIT_ISA {

struct Adds {
    template <class V>
    static V combine(V a, V b) {
        return a + b;
    }
};
struct Maximises {
    template <class V>
    static V combine(V a, V b) {
        return a > b ? a : b;
    }
};

// N, M: the sizes where they are known, 0 elsewhere.
template <class Op, int N, int M>
void pair_messages_of(const double* table, std::int64_t n, std::int64_t m, const double* in_rows,
                      const double* in_columns, double* out_rows, double* out_columns) {
    if (N) n = N;
    if (M) m = M;
    double columns[M ? M : 1];
    double* __restrict to_columns = M ? columns : out_columns;
    for (std::int64_t b = 0; b < m; ++b) to_columns[b] = 0;
    for (std::int64_t a = 0; a < n; ++a, table += m) {
        const double row_weight = in_rows[a];
        std::int64_t b = 0;
        double to_row = 0;
        if (!M && m >= kWidth) {
            Vector<double> rows{};
            for (; b + kWidth <= m; b += kWidth) {
                const Vector<double> t = load_loose(table + b);
                rows = Op::combine(rows, t * load_loose(in_columns + b));
                store_loose(to_columns + b, Op::combine(load_loose(to_columns + b), row_weight * t));
            }
            to_row = reduce(rows, [](auto x, auto y) { return Op::combine(x, y); });
        }
        for (; b < m; ++b) {
            to_row = Op::combine(to_row, table[b] * in_columns[b]);
            to_columns[b] = Op::combine(to_columns[b], row_weight * table[b]);
        }
        out_rows[a] = to_row;
    }
    if (M)
        for (std::int64_t b = 0; b < m; ++b) out_columns[b] = columns[b];
}

template <class Op>
void pair_messages(const double* table, std::int64_t n, std::int64_t m, const double* in_rows,
                   const double* in_columns, double* out_rows, double* out_columns) {
    const PairMessages of = n != m   ? pair_messages_of<Op, 0, 0>
                            : n == 2 ? pair_messages_of<Op, 2, 2>
                            : n == 3 ? pair_messages_of<Op, 3, 3>
                            : n == 4 ? pair_messages_of<Op, 4, 4>
                                     : pair_messages_of<Op, 0, 0>;
    of(table, n, m, in_rows, in_columns, out_rows, out_columns);
}

}  // namespace crfkit::CRFKIT_ISA
