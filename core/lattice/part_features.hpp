// What is active on the parts of lattices: for each node, or for each arc, a list of (weight, value).
#pragma once

#include <cstdint>
#include <span>

namespace crfkit {

// One block of weights, first_weight..first_weight + n_weights − 1, in one of three forms:
//   dense      values [parts, n_weights]
//   lists      part p has the weights ids[ptr[p]..ptr[p+1]−1], counted from first_weight, with these values
//              (none given: all 1)
//   one each   part p has the weight ids[p] with value 1; −1: none
// Score and residual of a part: s = Σ_k value_k w_k,   ∂/∂w_k += residual · value_k.
struct ActiveFeatures {
    bool on_arcs;
    std::int64_t first_weight, n_weights, n_parts;
    std::span<const double> dense;
    std::span<const std::int64_t> ptr;
    std::span<const std::int32_t> ids;
    std::span<const double> values;

    // throws std::invalid_argument if the arrays do not fit together.
    void check() const;
    std::int64_t n_entries() const {
        return static_cast<std::int64_t>(dense.empty() ? ids.size() : dense.size());
    }
    // scores[i] += score of part first + i, at the weights w [D].
    void score(std::int64_t first, std::int64_t n, const double* w, double* scores) const;
    // Calls function(weight, value) for the features of a part.
    template <class Function>
    void each(std::int64_t part, const Function& function) const {
        if (!dense.empty()) {
            for (std::int64_t k = 0; k < n_weights; ++k)
                function(first_weight + k, dense[part * n_weights + k]);
        } else if (!ptr.empty()) {
            for (std::int64_t k = ptr[part]; k < ptr[part + 1]; ++k)
                function(first_weight + ids[k], values.empty() ? 1.0 : values[k]);
        } else if (!ids.empty() && ids[part] >= 0) {
            function(first_weight + ids[part], 1.0);
        }
    }
    // out [D] += residuals[i] · values of part first + i.
    void add(std::int64_t first, std::int64_t n, const double* residuals, double* out) const;
};

}  // namespace crfkit
