// The second half of JunctionTreeSums: what is distributed from the last clique to the first.
#include <algorithm>
#include <cmath>

#include "graphs/clique_blocks.hpp"
#include "graphs/junction_tree_sums.hpp"

namespace crfkit {

// P(x, s) of a block. The message's table holds P(s) / message(s), or its logarithm.
void JunctionTreeSums::belief_block(const Clique& clique, bool in_logs, const std::int64_t* bases,
                                    std::int64_t begin, std::int64_t x, double* out) const {
    const double* quotients = data_[clique.message] + begin;
    if (in_logs) {
        multiply_block<true>(kernels_, clique, data_.data(), bases, x, out);
        kernels_.add(out, quotients, clique.block);
        kernels_.exponentiate(out, clique.block);
    } else {
        // quotients first: partial products then only decrease (3. of the header)
        const std::int32_t row = clique.row_input;
        if (row < 0)
            std::copy_n(quotients, clique.block, out);
        else
            kernels_.product(out, quotients,
                             data_[clique.inputs[row].table] + bases[row] + clique.inputs[row].summed[x],
                             clique.block);
        for (std::size_t i = 0; i < clique.inputs.size(); ++i) {
            const CliqueInput& input = clique.inputs[i];
            if (static_cast<std::int32_t>(i) != row)
                join_block<false>(kernels_, input, data_[input.table] + bases[i] + input.summed[x],
                                  clique.block, out);
        }
    }
}

double JunctionTreeSums::marginals(std::span<const double> scores, double* of_values, double* of_scores) {
    const double log_z = collect(scores, true);
    if (log_z > -HUGE_VAL) distribute(of_values, of_scores, false, nullptr);
    return log_z;
}

double JunctionTreeSums::entropy(std::span<const double> scores, double* entropy) {
    const double log_z = collect(scores, true);
    if (log_z > -HUGE_VAL) distribute(nullptr, nullptr, false, entropy);
    return log_z;
}

double JunctionTreeSums::hessian_vector(std::span<const double> scores, std::span<const double> direction,
                                        double* of_values, double* of_scores) {
    const double log_z = collect(scores, true);
    if (log_z == -HUGE_VAL) return log_z;
    collect_changes(direction);
    distribute(of_values, of_scores, true, nullptr);
    return log_z;
}

// The change of the logarithm of every table along a direction of the scores:
// ∂ log message(s) = Σ_x P(x | s) Σ_i ∂ log table_i(x, s_i),  P(x | s) = Π_i table_i(x, s_i) / message(s).
void JunctionTreeSums::collect_changes(std::span<const double> direction) {
    change_arena_.resize(arena_.size());
    changes_.resize(data_.size());
    for (std::size_t i = 0; i < data_.size(); ++i)
        changes_[i] = change_arena_.data() + (data_[i] - arena_.data());
    for (std::size_t i = 0; i < data_.size(); ++i) {
        if (tree_.tables[i].maker >= 0) continue;
        const std::int64_t* places = tree_.places.data() + tree_.tables[i].first_place;
        for (std::int64_t j = 0; j < tree_.tables[i].size; ++j)
            changes_[i][j] = places[j] < 0 ? 0.0 : direction[places[j]];
    }
    for (std::size_t c = 0; c < tree_.cliques.size(); ++c) {
        const Clique& clique = tree_.cliques[c];
        const bool in_logs = clique_in_logs_[c];
        const std::int64_t n = clique.block;
        for_each_block(clique, [&](std::int64_t begin, const std::int64_t* bases) {
            double *out = changes_[clique.message] + begin, *total = block_sum_.data();
            std::fill_n(out, n, 0.0);
            std::fill_n(total, n, 0.0);
            double* high = block_high_.data();  // the largest logarithm, in the log domain
            std::fill_n(high, n, in_logs ? -HUGE_VAL : 0.0);
            for (std::int64_t x = 0; in_logs && x < clique.n_summed; ++x) {
                multiply_block<true>(kernels_, clique, data_.data(), bases, x, block_.data());
                kernels_.raise(high, block_.data(), n);
            }
            std::vector<double> moves(n);
            for (std::int64_t x = 0; x < clique.n_summed; ++x) {
                if (in_logs) {
                    multiply_block<true>(kernels_, clique, data_.data(), bases, x, block_.data());
                    for (std::int64_t j = 0; j < n; ++j) block_[j] -= high[j] > -HUGE_VAL ? high[j] : 0.0;
                    kernels_.exponentiate(block_.data(), n);
                } else {
                    multiply_block<false>(kernels_, clique, data_.data(), bases, x, block_.data());
                }
                multiply_block<true>(kernels_, clique, changes_.data(), bases, x, moves.data());
                kernels_.add(total, block_.data(), n);
                kernels_.add_product(out, block_.data(), moves.data(), n);
            }
            for (std::int64_t j = 0; j < n; ++j) out[j] = total[j] > 0 ? out[j] / total[j] : 0.0;
        });
    }
}

// From the last clique to the first. A table becomes P / table, as the clique that made it reads it, and its
// change that of the logarithm of this quotient.
void JunctionTreeSums::distribute(double* of_values, double* of_scores, bool changes, double* entropy) {
    const ConditionedGraph& graph = tree_.conditioned;
    if (of_values) {
        std::fill_n(of_values, tree_.value_count, 0.0);
        for (std::size_t v = 0; !changes && v < graph.fixed.size(); ++v)
            if (graph.fixed[v] >= 0) of_values[tree_.first_value[v] + graph.fixed[v]] = 1.0;
        std::fill_n(of_scores, tree_.n_scores, 0.0);
        for (const std::int64_t place : graph.constants) of_scores[place] = changes ? 0.0 : 1.0;
    }
    if (entropy) *entropy = 0;
    for (std::size_t c = tree_.cliques.size(); c-- > 0;) {
        const Clique& clique = tree_.cliques[c];
        const double one = 1.0, nothing = 0.0;
        if (tree_.tables[clique.message].user < 0)
            finish(clique.message, &one, changes ? &nothing : nullptr, of_values, of_scores);
        if (entropy) *entropy += clique_entropy(clique, clique_in_logs_[c]);
        distribute_clique(clique, clique_in_logs_[c], changes);
        for (std::size_t i = 0; i < clique.inputs.size(); ++i)
            finish(clique.inputs[i].table, probabilities_.data() + input_begins_[i],
                   changes ? moved_.data() + input_begins_[i] : nullptr, of_values, of_scores);
    }
}

// P of each input, and its change.
void JunctionTreeSums::distribute_clique(const Clique& clique, bool in_logs, bool changes) {
    const std::int64_t n = clique.block;
    std::int64_t total = 0;
    input_begins_.clear();
    for (const CliqueInput& input : clique.inputs) {  // tables of the same variables share P
        input_begins_.push_back(input.same_as < 0 ? total : input_begins_[input.same_as]);
        if (input.same_as < 0) total += tree_.tables[input.table].size;
    }
    probabilities_.assign(total, 0.0);
    if (changes) moved_.assign(total, 0.0);
    double *belief = block_.data(), *moves = block_sum_.data();
    for_each_block(clique, [&](std::int64_t begin, const std::int64_t* bases) {
        for (std::int64_t x = 0; x < clique.n_summed; ++x) {
            belief_block(clique, in_logs, bases, begin, x, belief);
            if (changes) {
                multiply_block<true>(kernels_, clique, changes_.data(), bases, x, moves);
                kernels_.add(moves, changes_[clique.message] + begin, n);
                kernels_.multiply(moves, belief, n);
            }
            for (std::size_t i = 0; i < clique.inputs.size(); ++i) {
                const CliqueInput& input = clique.inputs[i];
                if (input.same_as >= 0) continue;
                const std::int64_t at = input_begins_[i] + bases[i] + input.summed[x];
                project_block(kernels_, input, belief, n, probabilities_.data() + at);
                if (changes) project_block(kernels_, input, moves, n, moved_.data() + at);
            }
        }
    });
}

// H(x | s) of a clique: −Σ P(x, s) log P(x | s), in which no term is negative.
double JunctionTreeSums::clique_entropy(const Clique& clique, bool in_logs) {
    if (clique.n_summed == 1) return 0;
    double entropy = 0;
    const std::int64_t n = clique.block;
    for_each_block(clique, [&](std::int64_t begin, const std::int64_t* bases) {
        double *belief = block_.data(), *total = block_sum_.data();
        std::fill_n(total, n, 0.0);
        for (std::int64_t x = 0; x < clique.n_summed; ++x) {
            belief_block(clique, in_logs, bases, begin, x, belief);
            kernels_.add(total, belief, n);
        }
        for (std::int64_t x = 0; x < clique.n_summed; ++x) {
            belief_block(clique, in_logs, bases, begin, x, belief);
            for (std::int64_t j = 0; j < n; ++j)
                if (belief[j] > 0) entropy += belief[j] * std::log(total[j] / belief[j]);
        }
    });
    return entropy;
}

// P of a table, and its change, are known: they are written out, or prepared for the clique that made it.
void JunctionTreeSums::finish(std::int32_t number, const double* probabilities, const double* moved,
                              double* of_values, double* of_scores) {
    const TreeTable& table = tree_.tables[number];
    const double* result = moved ? moved : probabilities;
    for (const std::int32_t v : variables_of_[number]) {
        if (!of_values) break;
        std::int64_t inner = 1;
        for (std::size_t k = table.scope.size(); table.scope[--k] != v;)
            inner *= tree_.conditioned.sizes[table.scope[k]];
        const auto values = tree_.conditioned.values_of(v);
        double* out = of_values + tree_.first_value[tree_.conditioned.variable[v]];
        for (std::int64_t begin = 0, x = 0; begin < table.size; begin += inner) {
            out[values[x]] += kernels_.sum(result + begin, inner);
            x = x + 1 == static_cast<std::int64_t>(values.size()) ? 0 : x + 1;
        }
    }
    if (table.maker < 0) {
        const std::int64_t* places = tree_.places.data() + table.first_place;
        for (std::int64_t i = 0; of_scores && i < table.size; ++i)
            if (places[i] >= 0) of_scores[places[i]] = result[i];
        return;
    }
    double* data = data_[number];
    const State& state = states_[number];
    const bool wanted_in_logs = clique_in_logs_[table.maker];
    for (std::int64_t i = 0; i < table.size; ++i) {
        const double p = probabilities[i];
        if (wanted_in_logs)
            data[i] = p > 0 ? std::log(p) - (state.in_logs ? data[i] : std::log(data[i])) - state.log_largest
                            : -HUGE_VAL;
        else
            data[i] = p > 0 ? p / (state.largest * (state.in_logs ? std::exp(data[i]) : data[i])) : 0.0;
        if (moved) changes_[number][i] = p > 0 ? moved[i] / p - changes_[number][i] : 0.0;
    }
}

}  // namespace crfkit
