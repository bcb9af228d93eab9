// f(w) = loss(w) + ½ Σ_d l2_d w_d²: what training minimises, for any loss. (A penalty l1 is not smooth and is
// the optimizer's business.)
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/forks.hpp"
#include "training/data_loss.hpp"
#include "training/online.hpp"
#include "training/penalty.hpp"

namespace crfkit {

class Objective {
  public:
    // l2: one number for all weights, or one for each. Throws std::invalid_argument if there are others.
    Objective(std::shared_ptr<DataLoss> loss, std::vector<double> l2)
        : loss_(std::move(loss)), penalty_(std::move(l2), loss_->n_weights) {}

    std::int64_t n_weights() const { return loss_->n_weights; }
    std::int64_t n_sequences() const { return loss_->n_sequences; }
    int n_threads() const { return loss_->n_threads; }
    std::span<const double> l2() const { return penalty_.l2(); }

    // ∇f = ∇ loss + l2 ∘ w.
    double value_and_gradient(const double* w, double* gradient) {
        const std::lock_guard one_at_a_time(mutex_);
        const double loss = loss_->evaluate(w, gradient);
        return loss + penalty_.add_gradient(w, gradient, n_threads());
    }
    // ∇²f v = ∇² loss v + l2 ∘ v.
    void hessian_vector(const double* w, const double* v, double* out) {
        const std::lock_guard one_at_a_time(mutex_);
        loss_->hessian_vector(w, v, out);
        penalty_.add_product(v, out, n_threads());
    }
    // From now on answers in double precision. Returns whether that is a change.
    bool refine() {
        const std::lock_guard one_at_a_time(mutex_);
        return loss_->refine();
    }

    // Calls use(sequences) with the losses of single sequences, without penalty, while nobody else asks
    // anything.
    template <class Function>
    void with_sequences(const Function& use) {
        const std::lock_guard one_at_a_time(mutex_);
        use(loss_->sequences());
    }
    // The same with steps after mistakes.
    template <class Function>
    void with_mistakes(const Function& use) {
        const std::lock_guard one_at_a_time(mutex_);
        if (!online_) online_ = std::make_unique<Online>(*loss_);
        use(*online_);
    }

  private:
    std::shared_ptr<DataLoss> loss_;
    SquaredPenalty penalty_;
    std::unique_ptr<Online> online_;  // from the first question about mistakes on
    ForkMutex mutex_;  // a loss keeps its tables: questions from several threads wait for each other
};

}  // namespace crfkit
