#include "graphs/junction_tree_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graphs/clique_blocks.hpp"

namespace crfkit {
namespace {

constexpr double kSafeRange = 600;

}  // namespace

JunctionTreeSums::JunctionTreeSums(const JunctionTree& tree)
    : tree_(tree),
      kernels_(table_kernels()),
      states_(tree.tables.size()),
      data_(tree.tables.size(), nullptr),
      clique_in_logs_(tree.cliques.size(), false),
      variables_of_(tree.tables.size()) {
    for (std::size_t v = 0; v < tree.table_of.size(); ++v)
        variables_of_[tree.table_of[v]].push_back(static_cast<std::int32_t>(v));
    std::int64_t largest = 1;
    for (const Clique& clique : tree.cliques) largest = std::max(largest, clique.block);
    block_.resize(largest);
    block_high_.resize(largest);
    block_sum_.resize(largest);
}

double JunctionTreeSums::log_partition(std::span<const double> scores) { return collect(scores, false); }

// log Z = Σ constants + Σ over the messages that have no variable. keep: all tables are kept.
double JunctionTreeSums::collect(std::span<const double> scores, bool keep) {
    if (!tree_.possible()) return -HUGE_VAL;
    double log_z = 0;
    for (const std::int64_t place : tree_.conditioned.constants) log_z += scores[place];
    if (log_z == -HUGE_VAL) return log_z;
    single_.clear();
    if (keep) {
        std::int64_t total = 0;
        for (const TreeTable& table : tree_.tables) total += table.size;
        arena_.resize(total);
        total = 0;
        for (std::size_t i = 0; i < data_.size(); total += tree_.tables[i++].size)
            data_[i] = arena_.data() + total;
    } else {
        single_.resize(tree_.tables.size());
    }
    const auto prepare = [&](std::int32_t table) {
        if (keep) return;
        single_[table] = Buffer<double>(tree_.tables[table].size);
        data_[table] = single_[table].data();
    };
    for (std::size_t c = 0; c < tree_.cliques.size(); ++c) {
        const Clique& clique = tree_.cliques[c];
        double range = 0, log_scale = 0;
        bool in_logs = false;
        for (const CliqueInput& input : clique.inputs) {
            if (tree_.tables[input.table].maker < 0) {
                prepare(input.table);
                if (!load(input.table, scores)) return -HUGE_VAL;
            }
            range += states_[input.table].range;
            log_scale += states_[input.table].log_scale;
            in_logs = in_logs || states_[input.table].in_logs;
        }
        in_logs = in_logs || range > kSafeRange;
        clique_in_logs_[c] = in_logs;
        prepare(clique.message);
        states_[clique.message].log_scale = log_scale;
        if (!sum_clique(clique, in_logs)) return -HUGE_VAL;
        if (!keep)
            for (const CliqueInput& input : clique.inputs) single_[input.table] = Buffer<double>();
        if (tree_.tables[clique.message].size == 1 && tree_.tables[clique.message].scope.empty())
            log_z += states_[clique.message].log_scale;
    }
    return log_z;
}

// A table of the graph; false if all of it is −inf.
bool JunctionTreeSums::load(std::int32_t table, std::span<const double> scores) {
    const std::int64_t size = tree_.tables[table].size;
    const std::int64_t* places = tree_.places.data() + tree_.tables[table].first_place;
    double* data = data_[table];
    for (std::int64_t i = 0; i < size; ++i) data[i] = places[i] < 0 ? 0.0 : scores[places[i]];
    states_[table] = State{};
    return rescale(table, true);
}

// Divides a table, given as logarithms or not, by its largest entry, and measures its range. Logarithms
// become numbers where the range allows. False if all entries are 0.
bool JunctionTreeSums::rescale(std::int32_t table, bool in_logs) {
    const std::int64_t size = tree_.tables[table].size;
    double* data = data_[table];
    State& state = states_[table];
    if (!in_logs) {
        double largest, smallest;
        kernels_.range(data, size, &largest, &smallest);
        if (largest == 0) return false;
        kernels_.scale(data, 1 / largest, size);
        state.largest = largest;
        state.log_largest = std::log(largest);
        state.log_scale += state.log_largest;
        state.range = std::log(largest / smallest);
        state.in_logs = false;
        return true;
    }
    double largest = -HUGE_VAL, smallest = HUGE_VAL;
    for (std::int64_t i = 0; i < size; ++i) {
        largest = std::max(largest, data[i]);
        if (data[i] > -HUGE_VAL) smallest = std::min(smallest, data[i]);
    }
    if (largest == -HUGE_VAL) return false;
    kernels_.shift(data, -largest, size);
    state.log_largest = largest;
    state.log_scale += largest;
    state.range = largest - smallest;
    state.in_logs = state.range > kSafeRange;
    if (!state.in_logs) kernels_.exponentiate(data, size);
    return true;
}

void JunctionTreeSums::to_logs(std::int32_t table) {
    if (states_[table].in_logs) return;
    double* data = data_[table];
    for (std::int64_t i = 0; i < tree_.tables[table].size; ++i) data[i] = std::log(data[i]);
    states_[table].in_logs = true;
}

bool JunctionTreeSums::sum_clique(const Clique& clique, bool in_logs) {
    if (in_logs) {
        for (const CliqueInput& input : clique.inputs) to_logs(input.table);
        sum_in_logs(clique);
        return rescale(clique.message, true);
    }
    double* message = data_[clique.message];
    const std::int32_t row = clique.inputs.size() > 1 ? clique.row_input : -1;
    for_each_block(clique, [&](std::int64_t begin, const std::int64_t* bases) {
        multiply_block<false>(kernels_, clique, data_.data(), bases, 0, message + begin);
        for (std::int64_t x = 1; x < clique.n_summed; ++x) {
            multiply_block<false>(kernels_, clique, data_.data(), bases, x, block_.data(), row);
            if (row < 0) {
                kernels_.add(message + begin, block_.data(), clique.block);
            } else {
                const CliqueInput& input = clique.inputs[row];
                kernels_.add_product(message + begin, block_.data(),
                                     data_[input.table] + bases[row] + input.summed[x], clique.block);
            }
        }
    });
    return rescale(clique.message, false);
}

// log-sum-exp: the largest term first, then the sum of the others relative to it.
void JunctionTreeSums::sum_in_logs(const Clique& clique) {
    double* message = data_[clique.message];
    const std::int64_t n = clique.block;
    for_each_block(clique, [&](std::int64_t begin, const std::int64_t* bases) {
        double *high = block_high_.data(), *sum = block_sum_.data(), *out = message + begin;
        multiply_block<true>(kernels_, clique, data_.data(), bases, 0, out);
        if (clique.n_summed == 1) return;
        std::copy_n(out, n, high);
        for (std::int64_t x = 1; x < clique.n_summed; ++x) {
            multiply_block<true>(kernels_, clique, data_.data(), bases, x, out);
            kernels_.raise(high, out, n);
        }
        std::fill_n(sum, n, 0.0);
        for (std::int64_t x = 0; x < clique.n_summed; ++x) {
            multiply_block<true>(kernels_, clique, data_.data(), bases, x, out);
            for (std::int64_t j = 0; j < n; ++j) out[j] -= high[j] > -HUGE_VAL ? high[j] : 0.0;
            kernels_.exponentiate(out, n);
            kernels_.add(sum, out, n);
        }
        for (std::int64_t j = 0; j < n; ++j) out[j] = sum[j] > 0 ? high[j] + std::log(sum[j]) : -HUGE_VAL;
    });
}

double JunctionTreeSums::sample(std::span<const double> scores, std::int64_t n, const double* uniforms,
                                std::int32_t* out) {
    const double log_z = collect(scores, true);
    if (log_z == -HUGE_VAL) return log_z;
    const std::int32_t n_free = tree_.conditioned.n_free();
    std::vector<std::int32_t> assignment(n_free);
    Pace pace;
    for (std::int64_t i = 0; i < n; ++i) {
        pace.work(64 * (n_free + 1));
        draw(assignment, uniforms + i * n_free);
        write_values(tree_, assignment, out + i * static_cast<std::int64_t>(tree_.conditioned.fixed.size()));
    }
    return log_z;
}

// From the last clique to the first: x given s.
void JunctionTreeSums::draw(std::span<std::int32_t> assignment, const double* uniforms) {
    std::vector<double> weights;
    for (std::size_t c = tree_.cliques.size(); c-- > 0;) {
        const Clique& clique = tree_.cliques[c];
        if (clique.n_summed == 1) continue;
        const bool in_logs = clique_in_logs_[c];
        weights.assign(clique.n_summed, in_logs ? 0.0 : 1.0);
        for (const CliqueInput& input : clique.inputs) {
            const double* entries = data_[input.table] + input_place(tree_, clique, input, assignment);
            for (std::int64_t x = 0; x < clique.n_summed; ++x) {
                const double entry = entries[input.summed[x]];
                weights[x] = in_logs ? weights[x] + entry : weights[x] * entry;
            }
        }
        if (in_logs) {
            const double high = *std::max_element(weights.begin(), weights.end());
            for (double& weight : weights) weight = std::exp(weight - high);
        }
        double total = 0;
        for (const double weight : weights) total += weight;
        double left = uniforms[clique.scope.front()] * total;
        std::int64_t chosen = -1;
        for (std::int64_t x = 0; x < clique.n_summed; ++x) {
            if (weights[x] == 0) continue;
            chosen = x;
            if ((left -= weights[x]) < 0) break;
        }
        assign_summed(tree_, clique, chosen, assignment);
    }
}

}  // namespace crfkit
