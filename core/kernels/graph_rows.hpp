// Messages of tables over two variables, in plain numbers, compiled for the processor at hand
// (graph_kernels.hpp).
#pragma once

#include <cstdint>

namespace crfkit {

// From table [n, m] and messages to it in_rows [n], in_columns [m]:
//   out_rows[a] = ⊕_b table[a, b] in_columns[b]        out_columns[b] = ⊕_a table[a, b] in_rows[a]
using PairMessages = void (*)(const double* table, std::int64_t n, std::int64_t m, const double* in_rows,
                              const double* in_columns, double* out_rows, double* out_columns);

struct GraphKernels {
    PairMessages pair_sums, pair_maxima;
};

// The fastest table that this processor can run.
const GraphKernels& graph_kernels();

}  // namespace crfkit
