// Naive mean field: the product of independent distributions q_i that is nearest to p in KL(q ‖ p).
//
//   log Z ≥ Σ_f E_q[score_f] + Σ_i H(q_i)                     for every q
//   q_i(x_i) ∝ exp(own_i(x_i) + Σ_{f∋i} E_q[score_f | x_i])   is the best q_i for the others
//
// so that updates of one variable after the other never lower the bound. Where tables hold −inf, q must give
// no weight to an impossible configuration: it starts at one possible assignment, and widens from there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graphs/message_plan.hpp"

namespace crfkit {

struct MeanFieldResult {
    bool possible = true;  // false: no assignment is; nothing else is set
    bool converged = false;
    double residual = 0;  // the largest change that one more update of any variable would make to q
    std::int64_t iterations = 0;
    double lower_bound = 0;
    std::vector<double> bounds;        // after each iteration
    std::vector<double> of_variables;  // [values]
    std::vector<double> of_tables;     // [n_scores]
};

// Begins at distributions of the variables alone, or where these do not serve at a possible assignment.
// Throws SearchSpent if none is found in time.
MeanFieldResult mean_field(const MessagePlan& plan, std::span<const double> scores,
                           std::span<const bool> allowed, double tolerance, std::int64_t max_iterations);

}  // namespace crfkit
