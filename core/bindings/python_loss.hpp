// A loss that Python functions compute: one whose data are elsewhere, for example.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include "bindings/arrays.hpp"
#include "bindings/lock_release.hpp"
#include "training/data_loss.hpp"

namespace crfkit {

class PythonLoss final : public DataLoss {
  public:
    // evaluate(w [D]) → (value, gradient [D]), hessian_vector(w, v) → [D], refine() → bool
    PythonLoss(std::int64_t n_weights, std::int64_t n_sequences, int n_threads, nanobind::callable evaluate,
               nanobind::callable hessian_vector, nanobind::callable refine)
        : DataLoss(n_weights, n_sequences, n_threads),
          evaluate_(std::move(evaluate)),
          hessian_vector_(std::move(hessian_vector)),
          refine_(std::move(refine)) {}

    double evaluate(const double* w, double* gradient) override {
        const LockTaken lock;
        const nanobind::tuple answer = nanobind::cast<nanobind::tuple>(evaluate_(vector(w)));
        copy_out(answer[1], gradient);
        return nanobind::cast<double>(answer[0]);
    }
    void hessian_vector(const double* w, const double* v, double* out) override {
        const LockTaken lock;
        copy_out(hessian_vector_(vector(w), vector(v)), out);
    }
    bool refine() override {
        const LockTaken lock;
        return nanobind::cast<bool>(refine_());
    }
    const SequenceSource& sequences() override { throw std::invalid_argument(kWhole); }
    std::unique_ptr<Mistakes> mistakes(const double*) override { throw std::invalid_argument(kWhole); }

  private:
    static constexpr const char* kWhole = "this loss answers for all data at once, not for single sequences";

    // A copy that Python may keep.
    nanobind::object vector(const double* values) const {
        NewArray<double> array({static_cast<std::size_t>(n_weights)});
        std::copy_n(values, n_weights, array.data());
        return array.take();
    }
    void copy_out(const nanobind::object& given, double* out) const {
        const auto numbers = nanobind::cast<Array<double>>(given);
        check_size("the answer of a loss", numbers.size(), n_weights);
        std::copy_n(numbers.data(), n_weights, out);
    }

    nanobind::callable evaluate_, hessian_vector_, refine_;
};

}  // namespace crfkit
