#include "chain/scaled_chain.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "chain/workspace.hpp"

namespace crfkit {
namespace {

// Maximum and spread of one table of arc scores [L, L].
std::pair<double, double> range(const double* table, std::int64_t L) {
    const auto [low, high] = std::minmax_element(table, table + L * L);
    return {*high, *high - *low};
}

// The scores of a chain, padded and exponentiated, and its messages.
class Padded {
  public:
    Padded(const ChainView& chain, const ChainView* direction)
        : kernels(kernels_for<double>(chain.n_labels)),
          stride(stride_for(kernels, chain.n_labels)),
          chain_(chain) {
        const std::int64_t L = chain.n_labels, T = chain.n_positions;
        work.reserve(T, stride, direction != nullptr);
        pad_rows(chain.states, T, -std::numeric_limits<double>::infinity(), work.states.data());
        if (direction) pad_rows(direction->states, T, 0.0, work.direction.data());
        if (chain.arcs_by_position || (direction && direction->arcs_by_position)) {
            position_arcs.assign(static_cast<std::size_t>(T), {0, nullptr, nullptr});
            tables_.assign((T - 1) * L * stride, 0);
            if (direction) moved_.assign((T - 1) * L * stride, 0);
            for (std::int64_t t = 1; t < T; ++t) {
                const std::int64_t at = (t - 1) * L * stride;
                const double maximum = fill_tables(t, direction, at);
                position_arcs[t] = {maximum, tables_.data() + at, direction ? moved_.data() + at : nullptr};
            }
            shared = {chain.n_labels, stride, 0, nullptr, nullptr, nullptr, nullptr};
        } else {
            for (Buffer<double>* table : {&tables_, &transposed_, &moved_, &moved_transposed_})
                table->assign(L * stride, 0);
            const double maximum = fill_tables(1, direction, 0);
            for (std::int64_t a = 0; a < L; ++a)
                for (std::int64_t b = 0; b < L; ++b) {
                    transposed_[b * stride + a] = tables_[a * stride + b];
                    moved_transposed_[b * stride + a] = moved_[a * stride + b];
                }
            shared = {
                chain.n_labels,          stride, maximum, tables_.data(), transposed_.data(), moved_.data(),
                moved_transposed_.data()};
        }
    }

    double sum_product() {
        return kernels.sum_product(shared, own(), chain_.n_positions, work.messages(work.probs.data(), 1));
    }
    // Leaves the change of the state marginals in work.probs.
    void hessian_vectors() {
        const Messages<double> messages = work.messages(work.probs.data(), 1);
        kernels.hessian_vectors(shared, own(), chain_.n_positions, messages,
                                work.hessian_vectors(work.probs.data()));
    }

    // Rows of S numbers cut to L.
    void copy_rows(const Buffer<double>& rows, double* out) const {
        for (std::int64_t t = 0; t < chain_.n_positions; ++t)
            std::copy_n(rows.data() + t * stride, chain_.n_labels, out + t * chain_.n_labels);
    }
    const double* weight(std::int64_t t) const {
        return position_arcs.empty() ? tables_.data() : position_arcs[t].weight;
    }
    const double* moved(std::int64_t t) const {
        return position_arcs.empty() ? moved_.data() : position_arcs[t].moved;
    }

    const Kernels<double>& kernels;
    const std::int32_t stride;
    Workspace<double> work;
    ArcTable<double> shared;
    std::vector<PositionArcs<double>> position_arcs;

  private:
    const PositionArcs<double>* own() const { return position_arcs.empty() ? nullptr : position_arcs.data(); }

    void pad_rows(const double* rows, std::int64_t n, double pad, double* out) const {
        for (std::int64_t t = 0; t < n; ++t) {
            std::copy_n(rows + t * chain_.n_labels, chain_.n_labels, out + t * stride);
            std::fill(out + t * stride + chain_.n_labels, out + (t + 1) * stride, pad);
        }
    }

    // W(a, b) = exp(score(a, b) − maximum) of the transitions into position t, and with a direction d its
    // derivative W(a, b) d(a, b). Returns the maximum, which log Z has once for each position.
    double fill_tables(std::int64_t t, const ChainView* direction, std::int64_t at) {
        const std::int64_t L = chain_.n_labels;
        const double* scores = chain_.arcs_into(t);
        const double maximum = range(scores, L).first;
        for (std::int64_t a = 0; a < L; ++a)
            for (std::int64_t b = 0; b < L; ++b) {
                const double weight = std::exp(scores[a * L + b] - maximum);
                tables_[at + a * stride + b] = weight;
                if (direction) moved_[at + a * stride + b] = weight * direction->arcs_into(t)[a * L + b];
            }
        return maximum;
    }

    const ChainView& chain_;
    Buffer<double> tables_, transposed_, moved_, moved_transposed_;
};

}  // namespace

// With weights W in [exp(−spread), 1], the sums Σ_a forward(a) W(a, b) of any two labels b differ by a factor
// of at most exp(spread), and so do backward messages. P(y_t = b) is then within exp(2 spread) of the share
// that the emission of b has at t: a label whose message underflows is too unlikely to be seen in any sum.
bool scaled_is_exact(const ChainView& chain) {
    const std::int64_t L = chain.n_labels;
    for (std::int64_t t = 1; t < (chain.arcs_by_position ? chain.n_positions : 2); ++t)
        if (!(range(chain.arcs_into(t), L).second <= WeightTables<double>::kSafeSpread)) return false;
    return true;
}

double scaled_log_partition(const ChainView& chain) { return Padded(chain, nullptr).sum_product(); }

double scaled_marginals(const ChainView& chain, double* states, double* arcs) {
    const std::int64_t L = chain.n_labels;
    Padded padded(chain, nullptr);
    const double log_partition = padded.sum_product();
    require_possible(log_partition);
    padded.copy_rows(padded.work.probs, states);
    // P(y_{t−1} = a, y_t = b) = forward_{t−1}(a) W(a, b) pushed_t(b): messages are normalised (kernels.hpp).
    for (std::int64_t t = 1; arcs && t < chain.n_positions; ++t) {
        const double* before = padded.work.forward.data() + (t - 1) * padded.stride;
        const double* after = padded.work.pushed.data() + t * padded.stride;
        for (std::int64_t a = 0; a < L; ++a)
            for (std::int64_t b = 0; b < L; ++b)
                *arcs++ = before[a] * padded.weight(t)[a * padded.stride + b] * after[b];
    }
    return log_partition;
}

void scaled_hessian_vector(const ChainView& chain, const ChainView& direction, double* states, double* arcs) {
    const std::int64_t L = chain.n_labels;
    Padded padded(chain, &direction);
    require_possible(padded.sum_product());
    padded.hessian_vectors();
    const Workspace<double>& work = padded.work;
    padded.copy_rows(work.probs, states);
    // The product rule: ∂P(a, b) = W (forward ∂pushed + ∂forward pushed) + ∂W forward pushed.
    for (std::int64_t t = 1; arcs && t < chain.n_positions; ++t) {
        const std::int64_t before = (t - 1) * padded.stride, here = t * padded.stride;
        for (std::int64_t a = 0; a < L; ++a)
            for (std::int64_t b = 0; b < L; ++b) {
                const std::int64_t at = a * padded.stride + b;
                const double left = work.forward[before + a], right = work.pushed[here + b];
                *arcs++ = padded.weight(t)[at] *
                              (left * work.d_pushed[here + b] + work.d_forward[before + a] * right) +
                          padded.moved(t)[at] * left * right;
            }
    }
}

}  // namespace crfkit
