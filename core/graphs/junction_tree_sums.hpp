// Sums over all assignments of a graph: log Z, marginals, entropy, samples, Hessian–vector products.
//
// Collecting: each clique multiplies its tables and sums (junction_tree.hpp). Distributing, from the last
// clique to the first: with the probabilities P(s) of the message's configurations known,
//
//   P(x, s) = P(s) / message(s) · Π_i table_i(x, s_i)           (0 where message(s) = 0)
//
// and P of each table is the sum of it over the variables that the table does not have. The clique itself is
// never stored: memory is that of the tables and messages.
//
// Number formats. Tables and messages are in the linear domain, divided by their largest entry, whose
// logarithm is kept. The range of a table is log(largest / smallest positive entry).
//   1. If the ranges of a clique's inputs add up to at most kSafeRange = 600, every product of positive
//      entries is at least exp(−600) > 1e−261: none underflows, so every term of every sum has its full
//      relative accuracy, and 0 is only where a factor is 0. The message is then exact to rounding.
//   2. Otherwise this clique works in the log domain: sums of logarithms, and log-sum-exp for the message.
//      Its inputs stay in the log domain; the message returns to the linear one if its own range is at most
//      kSafeRange.
//   3. Distributing: message(s), not divided, is at least exp(−600) by 1., so P(s) / message(s) is finite;
//      entries are at most 1, and partial products decrease to a probability. What underflows is thus a
//      probability below 1e−307, an absolute error of that size in each sum that it belongs to; P(s_i) /
//      table_i(s_i), times what it is multiplied with, is at most P(s_i), so no later step enlarges it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "graphs/junction_tree.hpp"
#include "kernels/tables.hpp"

namespace crfkit {

class JunctionTreeSums {
  public:
    // The tree must be complete() and outlive this.
    explicit JunctionTreeSums(const JunctionTree& tree);

    // Scores are [n_scores] and finite or −inf. Where those that the tree was planned with are −inf, they
    // must be too. All give log Z; where it is −inf, they write nothing else.
    double log_partition(std::span<const double> scores);
    // of_values [Σ cardinalities]; of_scores [n_scores] the probability of each entry of each table.
    double marginals(std::span<const double> scores, double* of_values, double* of_scores);
    // The change of both along a finite direction [n_scores].
    double hessian_vector(std::span<const double> scores, std::span<const double> direction,
                          double* of_values, double* of_scores);
    double entropy(std::span<const double> scores, double* entropy);
    // n assignments [n, V] from uniforms [n, n_free].
    double sample(std::span<const double> scores, std::int64_t n, const double* uniforms, std::int32_t* out);

  private:
    struct State {
        double log_scale = 0, range = 0;
        double largest = 1, log_largest = 0;  // what it was divided by last, as the clique made it
        bool in_logs = false;
    };

    double collect(std::span<const double> scores, bool keep);
    bool load(std::int32_t table, std::span<const double> scores);
    bool sum_clique(const Clique& clique, bool in_logs);
    void sum_in_logs(const Clique& clique);
    bool rescale(std::int32_t table, bool in_logs);
    void to_logs(std::int32_t table);
    void collect_changes(std::span<const double> direction);
    void distribute(double* of_values, double* of_scores, bool changes, double* entropy);
    void distribute_clique(const Clique& clique, bool in_logs, bool changes);
    void belief_block(const Clique& clique, bool in_logs, const std::int64_t* bases, std::int64_t begin,
                      std::int64_t x, double* out) const;
    double clique_entropy(const Clique& clique, bool in_logs);
    void finish(std::int32_t table, const double* probabilities, const double* changes, double* of_values,
                double* of_scores);
    void draw(std::span<std::int32_t> assignment, const double* uniforms);

    const JunctionTree& tree_;
    const TableKernels& kernels_;
    std::vector<State> states_;                            // [tables]
    std::vector<double*> data_, changes_;                  // [tables]
    std::vector<Buffer<double>> single_;                   // tables that are freed when they were used
    Buffer<double> arena_, change_arena_;                  // tables that are kept
    Buffer<double> probabilities_, moved_;                 // of the inputs of a clique
    std::vector<std::int64_t> input_begins_;               // [inputs] among the probabilities
    std::vector<bool> clique_in_logs_;                     // [cliques]
    std::vector<std::vector<std::int32_t>> variables_of_;  // [tables] whose marginals are taken from it
    std::vector<double> block_, block_high_, block_sum_;
};

}  // namespace crfkit
