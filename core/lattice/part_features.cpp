#include "lattice/part_features.hpp"

#include <stdexcept>
#include <string>

namespace crfkit {
namespace {

constexpr int kLanes = 8;  // sums that do not wait for each other

double dot(const double* a, const double* b, std::int64_t n) {
    double lanes[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (int k = 0; k < kLanes; ++k) lanes[k] += a[i + k] * b[i + k];
    double sum = 0;
    for (; i < n; ++i) sum += a[i] * b[i];
    for (const double lane : lanes) sum += lane;
    return sum;
}

}  // namespace

void ActiveFeatures::check() const {
    const auto fail = [](const std::string& what) { throw std::invalid_argument("active: " + what); };
    if (n_parts < 0 || n_weights < 0 || n_weights > INT32_MAX || first_weight < 0)
        fail("the numbers of parts and weights are out of range");
    if (!dense.empty() || (ids.empty() && ptr.empty())) {
        if (!ids.empty() || !ptr.empty() || !values.empty()) fail("dense values go without lists");
        if (n_weights > 0 && n_parts > INT64_MAX / n_weights) fail("more values than can be counted");
        if (static_cast<std::int64_t>(dense.size()) != n_parts * n_weights)
            fail("expected a value for each part and weight");
        return;
    }
    const std::int32_t lowest = ptr.empty() ? -1 : 0;
    for (const std::int32_t id : ids)
        if (id < lowest || id >= n_weights) fail("weight " + std::to_string(id) + " is out of range");
    if (ptr.empty()) {
        if (static_cast<std::int64_t>(ids.size()) != n_parts || !values.empty())
            fail("expected one weight for each part");
        return;
    }
    if (static_cast<std::int64_t>(ptr.size()) != n_parts + 1 || ptr.front() != 0 ||
        ptr.back() != static_cast<std::int64_t>(ids.size()))
        fail("ptr must start at 0, end at the number of ids and have one entry more than there are parts");
    for (std::size_t i = 1; i < ptr.size(); ++i)
        if (ptr[i] < ptr[i - 1]) fail("ptr must not decrease");
    if (!values.empty() && values.size() != ids.size()) fail("values and ids must have the same length");
}

void ActiveFeatures::score(std::int64_t first, std::int64_t n, const double* w, double* scores) const {
    for (std::int64_t i = 0; i < n; ++i) {
        double sum = 0;
        if (!dense.empty())
            sum = dot(dense.data() + (first + i) * n_weights, w + first_weight, n_weights);
        else
            each(first + i, [&](std::int64_t weight, double value) { sum += value * w[weight]; });
        scores[i] += sum;
    }
}

void ActiveFeatures::add(std::int64_t first, std::int64_t n, const double* residuals, double* out) const {
    for (std::int64_t i = 0; i < n; ++i)
        if (const double residual = residuals[i]; residual != 0)
            each(first + i, [&](std::int64_t weight, double value) { out[weight] += residual * value; });
}

}  // namespace crfkit
