#include "training/penalty.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/threads.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kWeightsPerTask = 1 << 14;

// Calls function(task, d) for every weight, in tasks that do not depend on the number of threads.
template <class Function>
void each_weight(std::int64_t n_weights, int n_threads, const Function& function) {
    const std::int64_t n_tasks = (n_weights + kWeightsPerTask - 1) / kWeightsPerTask;
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int) {
        const std::int64_t end = std::min(n_weights, (task + 1) * kWeightsPerTask);
        for (std::int64_t d = task * kWeightsPerTask; d < end; ++d) function(task, d);
    });
}

}  // namespace

SquaredPenalty::SquaredPenalty(std::vector<double> l2, std::int64_t n_weights)
    : l2_(std::move(l2)), n_weights_(n_weights) {
    if (l2_.size() != 1 && static_cast<std::int64_t>(l2_.size()) != n_weights)
        throw std::invalid_argument("l2 must be one number, or one for each weight");
}

double SquaredPenalty::add_gradient(const double* w, double* gradient, int n_threads) const {
    std::vector<double> sums(static_cast<std::size_t>(n_weights_ / kWeightsPerTask + 1), 0.0);
    each_weight(n_weights_, n_threads, [&](std::int64_t task, std::int64_t d) {
        const double slope = strength(d) * w[d];
        sums[task] += slope * w[d];
        gradient[d] += slope;
    });
    double sum = 0;
    for (const double part : sums) sum += part;
    return 0.5 * sum;
}

void SquaredPenalty::add_product(const double* v, double* out, int n_threads) const {
    each_weight(n_weights_, n_threads, [&](std::int64_t, std::int64_t d) { out[d] += strength(d) * v[d]; });
}

}  // namespace crfkit
