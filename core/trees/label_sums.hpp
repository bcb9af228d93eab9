// The labels of arcs, summed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/buffer.hpp"
#include "kernels/tree_rows.hpp"
#include "trees/graph.hpp"

namespace crfkit {

class LabelSums {
  public:
    // scores [arcs, R] → sums [arcs] = log Σ_r exp(score_r), shares [arcs, R] = exp(score_r − sum).
    void sum(std::int64_t n_arcs, std::int64_t R, const double* scores, double* sums, double* shares) {
        shift_.resize(R);
        for (std::int64_t arc = 0; arc < n_arcs; ++arc, scores += R, shares += R) {
            const double top = scores[tree_kernels().largest(scores, R)];
            if (top == kNever) {
                std::fill_n(shares, R, 0.0);
                sums[arc] = kNever;
                continue;
            }
            if (R == 1) {
                sums[arc] = top;
                shares[0] = 1;
                continue;
            }
            std::fill_n(shift_.data(), R, top);
            tree_kernels().weigh(scores, shift_.data(), R, shares);
            double sum = 0;
            for (std::int64_t r = 0; r < R; ++r) sum += shares[r];
            sums[arc] = top + std::log(sum);
            const double inverse = 1 / sum;
            for (std::int64_t r = 0; r < R; ++r) shares[r] *= inverse;
        }
    }

  private:
    Buffer<double> shift_;
};

}  // namespace crfkit
