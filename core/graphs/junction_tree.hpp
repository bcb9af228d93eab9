// Exact inference by variable elimination: the plan, made once for a graph and the values that are allowed.
//
// The variables are eliminated one by one. Eliminating v multiplies all tables that have v and sums v out:
//
//   message(s) = Σ_x Π_i table_i(x, s_i)            clique {v} ∪ s, separator s
//
// The message is a table for a variable that is eliminated later, so the cliques are the nodes of a junction
// tree. Every table is used once. Where a clique has several small tables, they are first multiplied with
// each other: a clique without a variable to sum out. Where the next clique is only a part of this one, the
// two are one, which sums out both variables: a large message less in memory.
//
// The variables of every table are sorted by when they are eliminated, the first the slowest. v is thus the
// slowest of its clique, and the message is a sum of rows that lie side by side.
//
// Memory and operations are known before anything is allocated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graphs/conditioned_graph.hpp"
#include "graphs/elimination_order.hpp"
#include "graphs/factor_graph.hpp"
#include "kernels/tables.hpp"

namespace crfkit {

// How the entries of a block of the clique are found in a table.
enum class Reading { one, row, runs };  // one entry for all; side by side; runs of either kind

// A table in a clique.
struct CliqueInput {
    std::int32_t table;
    std::int32_t same_as;  // an input before it that has the same variables; −1: none
    Reading reading;
    std::vector<std::int64_t> summed;   // [values summed over] where each begins in the table
    std::vector<std::int64_t> strides;  // [outer variables of the clique] 0: the table does not have it
    std::vector<std::int32_t> starts;   // of the runs, if there are any: where they begin in the table
    std::int64_t run;                   // length of a run
    bool constant;                      // a run is one entry; otherwise entries side by side

    Runs runs() const { return {starts.data(), static_cast<std::int64_t>(starts.size()), run, constant}; }
};

struct Clique {
    std::vector<std::int32_t> scope;  // free variables: the summed ones, the outer ones, those of the block
    std::int32_t n_summed_variables;
    std::int64_t n_summed;                  // configurations that are summed over; 1: nothing is
    std::vector<std::int32_t> outer_sizes;  // of the outer variables
    std::int64_t n_blocks, block;           // entries of the message: n_blocks · block
    std::vector<CliqueInput> inputs;
    std::int32_t message;         // the table that it makes
    std::int32_t row_input = -1;  // an input of which a block is a row; −1: none

    double entries() const { return static_cast<double>(n_summed) * n_blocks * block; }
};

// A table of the tree: one of the graph, or a message.
struct TreeTable {
    std::vector<std::int32_t> scope;  // free variables, sorted by when they are eliminated
    std::int64_t size;
    std::int64_t first_place;  // of a table of the graph: where its places begin; −1: a message
    std::int32_t maker = -1;   // the clique that makes it; −1: none
    std::int32_t user = -1;    // the clique that multiplies it; −1: none, its scope is empty
};

class JunctionTree {
  public:
    // See ConditionedGraph for the arguments. most_bytes: orders that need more are not followed to their
    // end.
    JunctionTree(const FactorGraph& graph, std::span<const std::uint8_t> allowed,
                 std::span<const double> scores, double most_bytes);

    bool possible() const { return conditioned.possible; }
    // What log Z needs, Hessian–vector products, and what all other questions do at most (for the k best see
    // junction_tree_max.hpp).
    double bytes_of_log_partition() const { return bytes_of_log_partition_; }
    double bytes_of_hessian_vector() const { return bytes_of_hessian_vector_; }
    double bytes() const { return bytes_; }
    double operations() const { return operations_; }  // products of two numbers, for log Z
    bool complete() const { return order.complete && !too_large_; }

    ConditionedGraph conditioned;
    EliminationOrder order;
    std::vector<std::int32_t> rank;  // [free] when it is eliminated
    std::vector<TreeTable> tables;
    std::vector<Clique> cliques;  // those that make a table come before the one that uses it
    std::vector<std::int64_t>
        places;  // of the entries of the graph's tables among its scores; −1: the score 0
    std::vector<std::int32_t> table_of;     // [free] the smallest table that has it
    std::int64_t value_count;               // Σ cardinalities of the graph
    std::vector<std::int64_t> first_value;  // [V + 1] of the graph
    std::int64_t n_scores;

  private:
    std::int32_t add_table(std::vector<std::int32_t> scope, std::int64_t first_place);
    std::int32_t add_graph_table(const ConditionedGraph::Table& table);
    std::int32_t add_clique(const std::vector<std::int32_t>& inputs, std::int32_t n_summed_variables);
    CliqueInput input_of(const Clique& clique, std::int32_t table, std::int32_t first_of_block) const;
    struct Pending;
    std::int32_t eliminate(Pending pending);
    std::vector<std::int32_t> multiply_same(const std::vector<std::int32_t>& inputs);
    void multiply_pairs(std::vector<std::int32_t>& inputs, double limit);
    bool merge(std::vector<Pending>& messages, const std::vector<std::int32_t>& inputs,
               const std::vector<std::int32_t>& scope, Pending& merged) const;
    double size_of(const std::vector<std::int32_t>& scope) const;
    std::vector<std::int32_t> joined(const std::vector<std::int32_t>& a,
                                     const std::vector<std::int32_t>& b) const;
    double bytes_of_plan() const;
    void measure();

    double bytes_of_log_partition_ = 0, bytes_of_hessian_vector_ = 0, bytes_ = 0, operations_ = 0;
    bool too_large_ = false;
};

// What a table of so many numbers takes of the memory.
double table_bytes(double size);

}  // namespace crfkit
