// Walking through the entries of a clique block by block, and reading its tables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "graphs/junction_tree.hpp"
#include "kernels/tables.hpp"

namespace crfkit {

// Calls body(begin, bases) for each block of the clique's message: where it begins in the message, and where
// the entries of its outer variables begin in each input.
template <class Body>
void for_each_block(const Clique& clique, const Body& body) {
    const std::size_t n_outer = clique.outer_sizes.size(), n_inputs = clique.inputs.size();
    std::vector<std::int32_t> counter(n_outer, 0);
    std::vector<std::int64_t> bases(n_inputs, 0);
    Pace pace;
    const std::int64_t work = 2 * clique.n_summed * clique.block * static_cast<std::int64_t>(n_inputs);
    for (std::int64_t number = 0;; ++number) {
        body(number * clique.block, bases.data());
        if (number + 1 == clique.n_blocks) return;
        pace.work(work);
        for (std::size_t k = n_outer; k-- > 0;) {
            if (++counter[k] < clique.outer_sizes[k]) {
                for (std::size_t i = 0; i < n_inputs; ++i) bases[i] += clique.inputs[i].strides[k];
                break;
            }
            for (std::size_t i = 0; i < n_inputs; ++i)
                bases[i] -= clique.inputs[i].strides[k] * (clique.outer_sizes[k] - 1);
            counter[k] = 0;
        }
    }
}

// out ·= (or +=, in the log domain) the entries of an input in a block, which begin at `entries`.
template <bool kLog>
void join_block(const TableKernels& kernels, const CliqueInput& input, const double* entries,
                std::int64_t block, double* out) {
    switch (input.reading) {
        case Reading::one:
            return kLog ? kernels.shift(out, *entries, block) : kernels.scale(out, *entries, block);
        case Reading::row:
            return kLog ? kernels.add(out, entries, block) : kernels.multiply(out, entries, block);
        case Reading::runs:
            return kLog ? kernels.add_runs(out, entries, input.runs())
                        : kernels.multiply_runs(out, entries, input.runs());
    }
}

// out = the entries of an input in a block.
inline void copy_block(const TableKernels& kernels, const CliqueInput& input, const double* entries,
                       std::int64_t block, double* out) {
    switch (input.reading) {
        case Reading::one:
            std::fill_n(out, block, *entries);
            return;
        case Reading::row:
            std::copy_n(entries, block, out);
            return;
        case Reading::runs:
            kernels.copy_runs(out, entries, input.runs());
    }
}

// out = the product (or sum) of all inputs but `skipped` (−1: of all) in a block, at summed configuration x.
// tables: by number.
template <bool kLog>
void multiply_block(const TableKernels& kernels, const Clique& clique, double* const* tables,
                    const std::int64_t* bases, std::int64_t x, double* out, std::int32_t skipped = -1) {
    const std::size_t first = skipped == 0 ? 1 : 0;
    for (std::size_t i = first; i < clique.inputs.size(); ++i) {
        if (static_cast<std::int32_t>(i) == skipped) continue;
        const CliqueInput& input = clique.inputs[i];
        const double* entries = tables[input.table] + bases[i] + input.summed[x];
        if (i == first)
            copy_block(kernels, input, entries, clique.block, out);
        else
            join_block<kLog>(kernels, input, entries, clique.block, out);
    }
}

// Adds a block to the entries of an input: what is summed over the variables that it does not have.
inline void project_block(const TableKernels& kernels, const CliqueInput& input, const double* values,
                          std::int64_t block, double* entries) {
    switch (input.reading) {
        case Reading::one:
            *entries += kernels.sum(values, block);
            return;
        case Reading::row:
            return kernels.add(entries, values, block);
        case Reading::runs:
            return kernels.project_runs(values, entries, input.runs());
    }
}

// Where the configuration of an assignment [free] of the separator begins in an input.
inline std::int64_t input_place(const JunctionTree& tree, const Clique& clique, const CliqueInput& input,
                                std::span<const std::int32_t> assignment) {
    std::int64_t place = 0, stride = 1;
    const auto& scope = tree.tables[input.table].scope;
    for (std::size_t k = scope.size(); k-- > 0;) {
        const std::int32_t v = scope[k];
        bool summed = false;
        for (std::int32_t s = 0; s < clique.n_summed_variables; ++s) summed |= clique.scope[s] == v;
        if (!summed) place += stride * assignment[v];
        stride *= tree.conditioned.sizes[v];
    }
    return place;
}

// Writes summed configuration x to the assignment.
inline void assign_summed(const JunctionTree& tree, const Clique& clique, std::int64_t x,
                          std::span<std::int32_t> assignment) {
    for (std::int32_t s = clique.n_summed_variables; s-- > 0;) {
        const std::int32_t v = clique.scope[s];
        assignment[v] = static_cast<std::int32_t>(x % tree.conditioned.sizes[v]);
        x /= tree.conditioned.sizes[v];
    }
}

// The value ids of the graph [V] of an assignment of the free variables.
inline void write_values(const JunctionTree& tree, std::span<const std::int32_t> assignment,
                         std::int32_t* out) {
    const ConditionedGraph& graph = tree.conditioned;
    std::copy(graph.fixed.begin(), graph.fixed.end(), out);
    for (std::int32_t v = 0; v < graph.n_free(); ++v)
        out[graph.variable[v]] = graph.values_of(v)[assignment[v]];
}

}  // namespace crfkit
