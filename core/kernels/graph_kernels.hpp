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

// The same for sizes at which all numbers stay in registers.
template <class Op, int N>
inline void small_pair(const double* table, const double* in_rows, const double* in_columns, double* out_rows,
                       double* out_columns) {
    CRFKIT_UNROLL
    for (int a = 0; a < N; ++a) {
        double to_row = table[a * N] * in_columns[0];
        CRFKIT_UNROLL
        for (int b = 1; b < N; ++b) to_row = Op::combine(to_row, table[a * N + b] * in_columns[b]);
        out_rows[a] = to_row;
        CRFKIT_UNROLL
        for (int b = 0; b < N; ++b) {
            const double product = table[a * N + b] * in_rows[a];
            out_columns[b] = a ? Op::combine(out_columns[b], product) : product;
        }
    }
}

// One message from what its table sends: scaled, compared with the old one, stored.
template <int N>
inline double store_message(std::int64_t n, const double* sent, const double* cavity, double damping,
                            double* message, double* belief, double* fresh) {
    if (N) n = N;
    double largest = sent[0], change = 0;
    CRFKIT_UNROLL
    for (std::int64_t x = 1; x < n; ++x) largest = sent[x] > largest ? sent[x] : largest;
    const double scale = 1 / largest;
    CRFKIT_UNROLL
    for (std::int64_t x = 0; x < n; ++x) {
        const double next = sent[x] * scale, by = next - message[x], size = by < 0 ? -by : by;
        change = size > change ? size : change;
        if (fresh) {
            fresh[x] = next;
        } else {
            message[x] = next - damping * by;
            belief[x] = cavity[x] * message[x];
        }
    }
    return change;
}

template <class Op, int N>
double pair_sweep_of(const PairTables& t, const PairPlace* places, std::int64_t n_places, double* fresh,
                     double* changes) {
    constexpr std::int64_t kMost = N ? N : kMostPairValues;
    const std::int64_t n = N ? N : t.n;
    double rows[kMost], columns[kMost], to_rows[kMost], to_columns[kMost];
    double largest = 0;
    for (std::int64_t i = 0; i < n_places; ++i) {
        const PairPlace& p = places[i];
        double *of_rows = t.messages + p.messages, *of_columns = of_rows + n;
        CRFKIT_UNROLL
        for (std::int64_t x = 0; x < n; ++x) rows[x] = t.beliefs[p.rows + x] / of_rows[x];
        CRFKIT_UNROLL
        for (std::int64_t x = 0; x < n; ++x) columns[x] = t.beliefs[p.columns + x] / of_columns[x];
        if constexpr (N > 0)
            small_pair<Op, N>(t.weights + p.table, rows, columns, to_rows, to_columns);
        else
            pair_messages_of<Op, 0, 0>(t.weights + p.table, n, n, rows, columns, to_rows, to_columns);
        double* out = fresh ? fresh + p.messages : nullptr;
        const double a = store_message<N>(n, to_rows, rows, t.damping, of_rows, t.beliefs + p.rows, out);
        const double b = store_message<N>(n, to_columns, columns, t.damping, of_columns,
                                          t.beliefs + p.columns, out ? out + n : nullptr);
        if (changes) {
            changes[2 * i] = a;
            changes[2 * i + 1] = b;
        }
        largest = a > largest ? a : largest;
        largest = b > largest ? b : largest;
    }
    return largest;
}

template <class Op>
double pair_sweep(const PairTables& t, const PairPlace* places, std::int64_t n_places, double* fresh,
                  double* changes) {
    const PairSweep of = t.n == 2   ? pair_sweep_of<Op, 2>
                         : t.n == 3 ? pair_sweep_of<Op, 3>
                         : t.n == 4 ? pair_sweep_of<Op, 4>
                         : t.n == 5 ? pair_sweep_of<Op, 5>
                         : t.n == 8 ? pair_sweep_of<Op, 8>
                                    : pair_sweep_of<Op, 0>;
    return of(t, places, n_places, fresh, changes);
}

}  // namespace crfkit::CRFKIT_ISA
