// The questions on one chain in log space: exact for scores of any size and for forbidden (−inf) parts.
//
// Slower than the scaled kernels (an exp for every arc), and the reference that they are tested against.
// Messages are normalised at every position, so that no digits are lost in long chains.
#pragma once

#include <cstdint>
#include <vector>

namespace crfkit {

// Scores of one chain. Start and end scores and allowed labels are folded into the states of the first and
// the last position.
struct ChainView {
    std::int64_t n_positions;  // T
    std::int32_t n_labels;     // L
    const double* states;      // [T, L]
    const double* arcs;        // [L, L] or [T − 1, L, L]
    bool arcs_by_position;

    const double* state(std::int64_t t) const { return states + t * n_labels; }
    // The arcs into position t ≥ 1.
    const double* arcs_into(std::int64_t t) const {
        return arcs_by_position ? arcs + (t - 1) * n_labels * n_labels : arcs;
    }
};

// log Z, and the forward messages normalised at each position: log of the probability of y_t if the chain
// ended there.
struct LogForward {
    explicit LogForward(const ChainView& chain);
    std::vector<double> messages;  // [T, L]
    double log_partition;          // −inf: no label sequence is possible
};

// Throws std::invalid_argument where log Z says that no label sequence is possible.
void require_possible(double log_partition);

// P(y_t) into states [T, L]; P(y_{t−1}, y_t) into arcs [T − 1, L, L] unless null. Throws when nothing is
// possible.
double log_marginals(const ChainView& chain, double* states, double* arcs);

// ∇² log Z · direction, same shapes. `direction` has the shape of the scores.
void log_hessian_vector(const ChainView& chain, const ChainView& direction, double* states, double* arcs);

// −Σ_y p(y) log p(y), as a sum of terms ≥ 0: Σ_t E[−log p(y_{t−1} | y_t)] + E[−log p(y_{T−1})].
double entropy(const ChainView& chain);

// Exact samples by backward draws. uniforms [n, T] in [0, 1), output [n, T].
void sample(const ChainView& chain, std::int64_t n, const double* uniforms, std::int32_t* output);

}  // namespace crfkit
