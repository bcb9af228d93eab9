#include "graphs/gibbs.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/interruption.hpp"
#include "base/threads.hpp"
#include "graphs/assignment_search.hpp"
#include "graphs/forest_blocks.hpp"
#include "graphs/message_domain.hpp"

namespace crfkit {

namespace {

struct ChainResult {
    std::vector<double> of_variables, of_tables;
};

template <class Domain>
ChainResult run_chain(const MessagePlan& plan, const GibbsBlocks& blocks, std::span<const double> scores,
                      std::span<const bool> allowed, const GibbsOptions& options,
                      std::vector<std::int32_t> state, Random random, std::int64_t begin, std::int64_t end,
                      GibbsSamples& out) {
    const FactorGraph& graph = plan.graph;
    ForestBlocks<Domain> chain(plan, blocks, scores, allowed);
    ChainResult result{std::vector<double>(static_cast<std::size_t>(graph.value_ptr.back())),
                       std::vector<double>(scores.size())};
    for (std::int64_t i = 0; i < options.burn_in; ++i) chain.sweep(state, random, nullptr);
    for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t k = 1; k < options.thin; ++k) chain.sweep(state, random, nullptr);
        chain.sweep(state, random, result.of_variables.data());
        std::copy(state.begin(), state.end(), out.samples.begin() + i * graph.n_variables());
        out.scores[i] = graph.score(scores, state);
        for (std::int64_t f = 0; f < graph.n_tables(); ++f) {
            std::int64_t place = graph.table_ptr[f];
            for (std::int64_t e = graph.scope_ptr[f]; e < graph.scope_ptr[f + 1]; ++e)
                place += blocks.strides[e] * state[graph.scopes[e]];
            result.of_tables[place] += 1;
        }
    }
    return result;
}

}  // namespace

GibbsSamples gibbs(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed,
                   const GibbsOptions& options) {
    const FactorGraph& graph = plan.graph;
    const GibbsBlocks blocks(plan, plan.variables, options.blocked);
    GibbsSamples out;
    out.n_blocks = static_cast<std::int64_t>(blocks.blocks.size());
    out.samples.resize(static_cast<std::size_t>(options.n * graph.n_variables()));
    out.scores.resize(static_cast<std::size_t>(options.n));
    for (std::int64_t c = 0; c <= options.n_chains; ++c)
        out.chain_ptr.push_back(options.n / options.n_chains * c + std::min(c, options.n % options.n_chains));
    std::vector<ChainResult> results(static_cast<std::size_t>(options.n_chains));
    std::vector<char> possible(results.size(), 1);
    parallel_for(options.n_chains, options.n_threads, [&](std::int64_t c, int) {
        std::seed_seq seed{options.seed & 0xffffffff, options.seed >> 32, static_cast<std::uint64_t>(c)};
        Random random(seed);
        std::vector<double> preference(static_cast<std::size_t>(graph.value_ptr.back()));
        for (double& x : preference) x = uniform(random);
        const auto start = find_assignment(plan, scores, allowed, preference);
        possible[c] = start.has_value();
        if (!start) return;
        const std::int64_t begin = out.chain_ptr[c], end = out.chain_ptr[c + 1];
        try {
            results[c] = run_chain<Sums<PlainNumbers>>(plan, blocks, scores, allowed, options, *start, random,
                                                       begin, end, out);
        } catch (const Underflow&) {
            results[c] = run_chain<Sums<Logarithms>>(plan, blocks, scores, allowed, options, *start, random,
                                                     begin, end, out);
        }
    });
    out.possible = std::find(possible.begin(), possible.end(), 0) == possible.end();
    if (!out.possible) return out;
    out.of_variables.resize(static_cast<std::size_t>(graph.value_ptr.back()));
    out.of_tables.resize(scores.size());
    const double share = 1.0 / static_cast<double>(options.n);
    for (const ChainResult& result : results) {
        for (std::size_t i = 0; i < out.of_variables.size(); ++i)
            out.of_variables[i] += share * result.of_variables[i];
        for (std::size_t i = 0; i < out.of_tables.size(); ++i)
            out.of_tables[i] += share * result.of_tables[i];
    }
    return out;
}

}  // namespace crfkit
