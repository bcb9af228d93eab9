// A best assignment with a proof: the dual of the linear relaxation, by block coordinate descent.
//
// For any numbers δ_{f→i}(x_i),
//   max_y score(y) ≤ Σ_i max_{x_i} (own_i + Σ_f δ_{f→i}) + Σ_f max_{x_f} (score_f − Σ_i δ_{f→i}).
// With max replaced by its smooth version ε log Σ exp(· / ε) the bound is lowest, in all δ to one variable i,
// at (Meshi, Jaakkola and Globerson 2012)
//   μ_{f→i}(x_i) = ε log Σ_{x_f \ i} exp((score_f − Σ_{j≠i} δ_{f→j}) / ε)
//   δ_{f→i} = μ_{f→i} − (own_i + Σ_g μ_{g→i}) / (1 + number of tables of i).
// ε is lowered step by step to 0; the bound reported is the lowest of the bound itself, which holds at all
// times. Assignments are read from δ, and improved value by value.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graphs/message_plan.hpp"

namespace crfkit {

struct MapOptions {
    std::int64_t max_iterations = 1000;  // passes over all variables
    double tolerance = 1e-9;             // of the gap, relative to the score
};

struct MapSolution {
    bool possible = true;  // false: no assignment is; nothing else is set
    bool optimal = false, converged = false;
    double score = 0, bound = 0;
    std::int64_t iterations = 0;
    std::vector<double> bounds;      // the lowest so far, after each pass
    std::vector<std::int32_t> best;  // [V]; empty if none was found
};

MapSolution solve_map(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed,
                      const MapOptions& options);

}  // namespace crfkit
