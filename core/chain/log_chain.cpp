#include "chain/log_chain.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/compensated_sum.hpp"
#include "base/interruption.hpp"

namespace crfkit {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr std::int64_t kExp = 16;  // operations that an exp or a log takes, about

// log Σ exp(x_i); −inf for no terms. Leaves exp(x_i − result) in x.
double normalise(double* x, std::int64_t n) {
    const double peak = n ? *std::max_element(x, x + n) : kNever;
    if (peak == kNever) {
        std::fill(x, x + n, 0.0);
        return kNever;
    }
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - peak);
    for (std::int64_t i = 0; i < n; ++i) x[i] /= sum;
    return peak + std::log(sum);
}

// Subtracts log Σ exp from a row and returns it.
double subtract_log_sum(double* x, std::int64_t n) {
    const double peak = *std::max_element(x, x + n);
    if (peak == kNever) return kNever;
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - peak);
    const double total = peak + std::log(sum);
    for (std::int64_t i = 0; i < n; ++i) x[i] -= total;
    return total;
}

// Conditional probabilities of the label before, given the label after: out(a) = P(y_{t−1} = a | y_t = b).
// Returns log Σ_a exp(forward(a) + arcs(a, b)).
double given_after(const ChainView& chain, const double* arcs, const double* forward, std::int32_t b,
                   double* out) {
    for (std::int32_t a = 0; a < chain.n_labels; ++a) out[a] = forward[a] + arcs[a * chain.n_labels + b];
    return normalise(out, chain.n_labels);
}

// out(b) = P(y_t = b | y_{t−1} = a), from next(b) = state_t(b) + backward_t(b).
double given_before(const ChainView& chain, const double* arcs, const double* next, std::int32_t a,
                    double* out) {
    for (std::int32_t b = 0; b < chain.n_labels; ++b) out[b] = arcs[a * chain.n_labels + b] + next[b];
    return normalise(out, chain.n_labels);
}

// Normalised backward messages [T, L]: log of what follows position t, up to a constant per position.
std::vector<double> log_backward(const ChainView& chain) {
    const std::int32_t L = chain.n_labels;
    std::vector<double> messages(static_cast<std::size_t>(chain.n_positions) * L, 0.0), next(L), terms(L);
    Pace pace;
    for (std::int64_t t = chain.n_positions - 1; t > 0; --t) {
        pace.work(kExp * L * L);
        for (std::int32_t b = 0; b < L; ++b) next[b] = chain.state(t)[b] + messages[t * L + b];
        for (std::int32_t a = 0; a < L; ++a)
            messages[(t - 1) * L + a] = given_before(chain, chain.arcs_into(t), next.data(), a, terms.data());
        subtract_log_sum(&messages[(t - 1) * L], L);
    }
    return messages;
}

// Subtracts from x its mean under the (normalised, logarithmic) weights.
void centre(double* x, const double* log_weights, std::int64_t n) {
    double mean = 0;
    for (std::int64_t i = 0; i < n; ++i) mean += std::exp(log_weights[i]) * x[i];
    for (std::int64_t i = 0; i < n; ++i) x[i] -= mean;
}

// p_i ← p_i (change_i − Σ_j p_j change_j)
void move_probabilities(double* p, const double* changes, std::int64_t n) {
    double mean = 0;
    for (std::int64_t i = 0; i < n; ++i) mean += p[i] * changes[i];
    for (std::int64_t i = 0; i < n; ++i) p[i] *= changes[i] - mean;
}

}  // namespace

void require_possible(double log_partition) {
    if (!(log_partition > kNever))
        throw std::invalid_argument("no label sequence is possible: every one has a part with score −inf");
}

LogForward::LogForward(const ChainView& chain)
    : messages(static_cast<std::size_t>(chain.n_positions) * chain.n_labels), log_partition(0) {
    const std::int32_t L = chain.n_labels;
    std::vector<double> terms(L);
    Total total;
    Pace pace;
    for (std::int64_t t = 0; t < chain.n_positions; ++t) {
        pace.work(kExp * L * L);
        double* row = &messages[t * L];
        for (std::int32_t b = 0; b < L; ++b) {
            row[b] = chain.state(t)[b];
            if (t > 0 && row[b] != kNever)
                row[b] += given_after(chain, chain.arcs_into(t), row - L, b, terms.data());
        }
        const double step = subtract_log_sum(row, L);
        if (step == kNever) {
            log_partition = kNever;
            return;
        }
        total.add(step);
    }
    log_partition = total.value();
}

double log_marginals(const ChainView& chain, double* states, double* arcs) {
    const std::int32_t L = chain.n_labels;
    const LogForward forward(chain);
    require_possible(forward.log_partition);
    const std::vector<double> backward = log_backward(chain);
    Pace pace;
    for (std::int64_t t = 0; t < chain.n_positions; ++t) {
        pace.work(kExp * L * L);
        double* row = states + t * L;
        for (std::int32_t b = 0; b < L; ++b) row[b] = forward.messages[t * L + b] + backward[t * L + b];
        normalise(row, L);
        if (!arcs || t == 0) continue;
        double* pairs = arcs + (t - 1) * L * L;
        for (std::int32_t a = 0; a < L; ++a)
            for (std::int32_t b = 0; b < L; ++b)
                pairs[a * L + b] = forward.messages[(t - 1) * L + a] + chain.arcs_into(t)[a * L + b] +
                                   chain.state(t)[b] + backward[t * L + b];
        normalise(pairs, static_cast<std::int64_t>(L) * L);
    }
    return forward.log_partition;
}

// u_t(b) = E[change of score up to t | y_t = b], q_t(a) = E[change after t | y_t = a], both centred at each
// position; d P(part) = P(part) · (u + change of the part + q − mean).
void log_hessian_vector(const ChainView& chain, const ChainView& direction, double* states, double* arcs) {
    const std::int32_t L = chain.n_labels;
    const std::int64_t T = chain.n_positions;
    const LogForward forward(chain);
    require_possible(forward.log_partition);
    const std::vector<double> backward = log_backward(chain);
    std::vector<double> u(static_cast<std::size_t>(T) * L), q(u.size(), 0.0), terms(L), next(L);
    Pace pace;
    for (std::int64_t t = 0; t < T; ++t) {
        pace.work(kExp * L * L);
        for (std::int32_t b = 0; b < L; ++b) {
            double change = direction.state(t)[b];
            if (t > 0) {
                given_after(chain, chain.arcs_into(t), &forward.messages[(t - 1) * L], b, terms.data());
                for (std::int32_t a = 0; a < L; ++a)
                    change += terms[a] * (u[(t - 1) * L + a] + direction.arcs_into(t)[a * L + b]);
            }
            u[t * L + b] = change;
        }
        centre(&u[t * L], &forward.messages[t * L], L);
    }
    for (std::int64_t t = T - 1; t > 0; --t) {
        pace.work(kExp * L * L);
        for (std::int32_t b = 0; b < L; ++b) next[b] = chain.state(t)[b] + backward[t * L + b];
        for (std::int32_t a = 0; a < L; ++a) {
            given_before(chain, chain.arcs_into(t), next.data(), a, terms.data());
            double change = 0;
            for (std::int32_t b = 0; b < L; ++b)
                change +=
                    terms[b] * (q[t * L + b] + direction.state(t)[b] + direction.arcs_into(t)[a * L + b]);
            q[(t - 1) * L + a] = change;
        }
        centre(&q[(t - 1) * L], &backward[(t - 1) * L], L);
    }
    log_marginals(chain, states, arcs);
    std::vector<double> changes(arcs ? static_cast<std::size_t>(L) * L : L);
    for (std::int64_t t = 0; t < T; ++t) {
        pace.work(kExp * L * L);
        for (std::int32_t b = 0; b < L; ++b) changes[b] = u[t * L + b] + q[t * L + b];
        move_probabilities(states + t * L, changes.data(), L);
        if (!arcs || t == 0) continue;
        for (std::int32_t a = 0; a < L; ++a)
            for (std::int32_t b = 0; b < L; ++b)
                changes[a * L + b] = u[(t - 1) * L + a] + direction.arcs_into(t)[a * L + b] +
                                     direction.state(t)[b] + q[t * L + b];
        move_probabilities(arcs + (t - 1) * L * L, changes.data(), static_cast<std::int64_t>(L) * L);
    }
}

double entropy(const ChainView& chain) {
    const std::int32_t L = chain.n_labels;
    const std::int64_t T = chain.n_positions;
    if (T == 0) return 0;
    std::vector<double> probs(static_cast<std::size_t>(T) * L), terms(L);
    log_marginals(chain, probs.data(), nullptr);
    const LogForward forward(chain);
    Total total;
    Pace pace;
    for (std::int64_t t = 1; t <= T; ++t)
        for (std::int32_t b = 0; b < L; ++b) {
            pace.work(kExp * L);
            if (t == T) {
                const double p = probs[(T - 1) * L + b];
                if (p > 0) total.add(-p * std::log(p));
                continue;
            }
            const double p = probs[t * L + b];
            if (p <= 0) continue;
            given_after(chain, chain.arcs_into(t), &forward.messages[(t - 1) * L], b, terms.data());
            for (std::int32_t a = 0; a < L; ++a)
                if (terms[a] > 0) total.add(-p * terms[a] * std::log(terms[a]));
        }
    return total.value();
}

void sample(const ChainView& chain, std::int64_t n, const double* uniforms, std::int32_t* output) {
    const std::int32_t L = chain.n_labels;
    const std::int64_t T = chain.n_positions;
    if (T == 0) return;
    const LogForward forward(chain);
    require_possible(forward.log_partition);
    std::vector<double> terms(L);
    Pace pace;
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t t = T - 1; t >= 0; --t) {
            pace.work(kExp * L);
            const double* row = &forward.messages[t * L];
            if (t == T - 1) {
                std::copy(row, row + L, terms.begin());
                normalise(terms.data(), L);
            } else {
                given_after(chain, chain.arcs_into(t + 1), row, output[i * T + t + 1], terms.data());
            }
            double rest = uniforms[i * T + t];
            std::int32_t chosen = -1;
            for (std::int32_t a = 0; a < L; ++a) {
                if (terms[a] <= 0) continue;
                chosen = a;  // the last possible label when rounding leaves a rest
                if ((rest -= terms[a]) < 0) break;
            }
            output[i * T + t] = chosen;
        }
}

}  // namespace crfkit
