// A best assignment with a proof: bounds from clusters of variables (cluster_graph.hpp), assignments read
// from them, and local search.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graphs/message_plan.hpp"

namespace crfkit {

struct MapOptions {
    std::int64_t max_iterations = 1000;  // passes forwards and backwards
    double tolerance = 1e-9;             // of the gap, relative to the score
    double cluster_size = 65536;         // configurations of a cluster; 1: tables as they are
    std::int64_t most_regions = 4000;    // that are given other values where the bound proves nothing
};

struct MapSolution {
    bool possible = true;  // false: no assignment is; nothing else is set
    bool optimal = false, converged = false;
    double score = 0, bound = 0;
    double scale = 1;  // below which a score is 0, for what is relative to it: 1, or less if all scores are
    std::int64_t iterations = 0;
    std::vector<double> bounds;      // the lowest so far, after each pass
    std::vector<std::int32_t> best;  // [V]; empty if none was found
};

// `start`, if it is given and possible, is the first assignment that is known.
MapSolution solve_map(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed,
                      const MapOptions& options, std::span<const std::int32_t> start = {});

}  // namespace crfkit
