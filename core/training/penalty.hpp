// The penalty ½ Σ_d l2_d w_d² of an objective.
#pragma once

#include <cstdint>
#include <vector>

namespace crfkit {

// l2: one strength for all weights, or one for each of the D weights.
class SquaredPenalty {
  public:
    // Throws std::invalid_argument unless there are as many strengths as said above.
    SquaredPenalty(std::vector<double> l2, std::int64_t n_weights);

    std::int64_t n_weights() const { return n_weights_; }
    const std::vector<double>& l2() const { return l2_; }
    // Its value at w; the gradient is added to `gradient`.
    double add_gradient(const double* w, double* gradient, int n_threads) const;
    // Adds its Hessian times v to `out`.
    void add_product(const double* v, double* out, int n_threads) const;

  private:
    std::vector<double> l2_;
    std::int64_t n_weights_;
};

}  // namespace crfkit
