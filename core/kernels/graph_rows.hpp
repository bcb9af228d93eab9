// Messages of tables over two variables, in plain numbers, compiled for the processor at hand
// (graph_kernels.hpp).
#pragma once

#include <cstdint>

namespace crfkit {

// From table [n, m] and messages to it in_rows [n], in_columns [m]:
//   out_rows[a] = ⊕_b table[a, b] in_columns[b]        out_columns[b] = ⊕_a table[a, b] in_rows[a]
using PairMessages = void (*)(const double* table, std::int64_t n, std::int64_t m, const double* in_rows,
                              const double* in_columns, double* out_rows, double* out_columns);

// A table over two variables: where its entries, its two messages, and the beliefs of its variables begin.
struct PairPlace {
    std::int64_t table, messages, rows, columns;
};

// Tables over two variables with n values each. Entries are above 0, so that messages are too, and what all
// other tables say of a variable is its belief divided by a message. The largest number of a message is 1.
struct PairTables {
    std::int64_t n;
    const double* weights;
    double* messages;
    double* beliefs;  // own · product of all messages to the variable
    double damping;
};

// Computes the messages of some tables, one table after the other. They go to `fresh`, in the places of the
// messages; null: they replace these, damped, and beliefs with them. changes [2 n_places]: the largest change
// of each message before damping; returns the largest of all.
using PairSweep = double (*)(const PairTables& tables, const PairPlace* places, std::int64_t n_places,
                             double* fresh, double* changes);

// The largest number of values that PairSweep takes.
inline constexpr std::int64_t kMostPairValues = 64;

struct GraphKernels {
    PairMessages pair_sums, pair_maxima;
    PairSweep sweep_sums, sweep_maxima;
};

// The fastest table that this processor can run.
const GraphKernels& graph_kernels();

}  // namespace crfkit
