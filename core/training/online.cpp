#include "training/online.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "base/interruption.hpp"
#include "training/objective.hpp"

namespace crfkit {

ChainOnline::ChainOnline(std::shared_ptr<const Layout> layout, std::shared_ptr<const Design> design,
                         Annotation gold, bool single_precision, int n_threads)
    : Online(layout->n_weights()),
      layout_(std::move(layout)),
      design_(std::move(design)),
      gold_(std::move(gold)),
      arcs_(*layout_) {
    check_for_training(*layout_, *design_, gold_, n_threads);
    mistakes_ = mistakes_of(*layout_, *design_, gold_, arcs_, w_.data(), single_precision, n_threads);
}

double Online::pass(const OnlineRule& rule, OnlineState& state, std::span<const std::int32_t> order) {
    const std::lock_guard one_at_a_time(mutex_);
    check(rule, state, order);
    difference_.clear();
    std::copy(state.w.begin(), state.w.end(), w_.begin());
    mistakes_->read_weights();
    constexpr std::int64_t kSequence = 1 << 16;  // operations: long ones look for themselves
    Pace pace;
    double loss = 0;
    try {
        for (std::size_t k = 0; k < order.size(); ++k) {
            pace.work(kSequence);
            const std::int32_t n = order[k];
            if (k + 1 < order.size()) mistakes_->expect(order[k + 1]);
            loss += see(rule, state, n);
            state.time += mistakes_->weight(n);
        }
    } catch (...) {  // interrupted: the steps so far count
        std::copy(w_.begin(), w_.end(), state.w.begin());
        throw;
    }
    std::copy(w_.begin(), w_.end(), state.w.begin());
    return loss;
}

double Online::see(const OnlineRule& rule, OnlineState& state, std::int64_t n) {
    const double weight = mistakes_->weight(n);
    if (weight == 0) return 0;
    const std::int64_t n_wrong = mistakes_->find(n, difference_);
    if (n_wrong == 0) return 0;
    const double loss = step(rule, state, n_wrong, weight);
    mistakes_->read_changes(difference_);
    difference_.clear();
    return weight * loss;
}

void Online::check(const OnlineRule& rule, const OnlineState& state,
                   std::span<const std::int32_t> order) const {
    if (state.w.size() != w_.size() || (state.second.size() != w_.size() &&
                                        !(state.second.empty() && rule.method != OnlineRule::Method::arow)))
        throw std::invalid_argument("the state of the learner has " + std::to_string(state.w.size()) +
                                    " and " + std::to_string(state.second.size()) + " numbers, expected " +
                                    std::to_string(w_.size()));
    for (const std::int32_t n : order)
        if (n < 0 || n >= mistakes_->n_sequences())
            throw std::invalid_argument("order names sequence " + std::to_string(n) + ", expected 0 to " +
                                        std::to_string(mistakes_->n_sequences() - 1));
}

// Moves the weights of the difference; returns the loss before.
double Online::step(const OnlineRule& rule, OnlineState& state, std::int64_t n_wrong, double weight) {
    const auto wrong = static_cast<double>(n_wrong);
    const bool arow = rule.method == OnlineRule::Method::arow;
    double gain = 0, squares = 0;  // w·d, and |d|² or Σ v d²
    difference_.each([&](std::int64_t i, double count) {
        gain += w_[i] * count;
        squares += arow ? state.second[i] * count * count : count * count;
    });
    const double deficit = std::max(0.0, -gain);  // rounding may turn ties round
    if (rule.method == OnlineRule::Method::perceptron) {
        move(weight, state);
        return deficit;
    }
    if (arow) {
        const double loss = deficit + wrong, r = rule.gamma / weight;
        move_by_variance(loss / (squares + r), 1 / r, state);
        return loss;
    }
    const double loss = deficit + (rule.error_sensitive ? std::sqrt(wrong) : 1.0);
    if (squares == 0)
        return loss;  // both label sequences have the same features: no weight can tell them apart
    const double most = weight * rule.aggressiveness;
    move(rule.variant == 2   ? loss / (squares + 0.5 / most)
         : rule.variant == 1 ? std::min(most, loss / squares)
                             : loss / squares,
         state);
    return loss;
}

void Online::move(double step, OnlineState& state) {
    const bool averaged = !state.second.empty();
    difference_.each([&](std::int64_t i, double count) {
        w_[i] += step * count;
        if (averaged) state.second[i] += (state.time + 1) * (step * count);
    });
}

void Online::move_by_variance(double step, double per_count, OnlineState& state) {
    difference_.each([&](std::int64_t i, double count) {
        double& variance = state.second[i];
        w_[i] += step * variance * count;
        variance = 1 / (1 / variance + per_count * count * count);
    });
}

}  // namespace crfkit
