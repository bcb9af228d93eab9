// Gibbs sampling: blocks of variables are drawn from their distribution given all others, again and again.
//
// A block is a forest (gibbs_blocks.hpp), so that this is exact: sums from the leaves to the roots, then
// values from the roots to the leaves. The same sums give the probabilities of its values given the others,
// whose mean over the samples is the estimate of the marginals (Rao–Blackwell). Chains draw from streams of
// their own, and give the same samples on any number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graphs/gibbs_blocks.hpp"

namespace crfkit {

struct GibbsOptions {
    std::int64_t n = 1000;  // samples, of all chains together
    std::int64_t burn_in = 100, thin = 1, n_chains = 4;
    std::uint64_t seed = 0;
    bool blocked = true;
    int n_threads = 1;
};

struct GibbsSamples {
    bool possible = true;  // false: no assignment is; nothing else is set
    std::int64_t n_blocks = 0;
    std::vector<std::int64_t> chain_ptr;  // [chains + 1] where the samples of each chain begin
    std::vector<std::int32_t> samples;    // [n, V]
    std::vector<double> scores;           // [n]
    std::vector<double> of_variables;     // [values]
    std::vector<double> of_tables;        // [n_scores] frequencies
};

// Throws SearchSpent if no possible assignment to start from is found in time.
GibbsSamples gibbs(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed,
                   const GibbsOptions& options);

}  // namespace crfkit
