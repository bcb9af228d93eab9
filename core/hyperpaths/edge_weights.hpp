// exp(score) of edges, as numbers of any size.
#pragma once

#include <cstdint>
#include <vector>

#include "base/wide.hpp"

namespace crfkit {

class EdgeWeights {
  public:
    // weight e = exp(scores[e]), e = 0 … n − 1. Memory is kept from call to call.
    void set(const double* scores, std::int64_t n);
    Wide operator[](std::int64_t e) const {
        return {mantissas_[e], exponents_.empty() ? 0.0 : exponents_[e]};
    }

  private:
    std::vector<double> mantissas_;  // [edges]
    std::vector<double> exponents_;  // [edges] empty: all are 0
};

}  // namespace crfkit
