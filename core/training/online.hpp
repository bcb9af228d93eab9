// Mistake-driven training: a step for each sequence whose best labels are wrong, none for the others.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/forks.hpp"
#include "data/annotation.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "lattice/arc_model.hpp"
#include "training/mistakes.hpp"

namespace crfkit {

// How a mistake moves the weights. With d = φ(right) − φ(predicted), deficit = −w·d ≥ 0 by how much the
// wrong labels score more, n the number of wrong labels and c the weight of the sequence:
//   perceptron (Collins 2002)          w += c d                           loss: deficit
//   passive-aggressive (Crammer 2006)  w += τ d                           loss: deficit + margin
//     margin = √n, or 1 if not `error_sensitive`; τ by variant, with C = c · aggressiveness:
//     0: loss / |d|²     1: min(C, loss / |d|²)     2: loss / (|d|² + 1 / (2 C))
//   AROW (Crammer 2009, Mejer & Crammer 2010), variances v [D] of the weights, r = gamma / c:
//     w += loss / (Σ v d² + r) · v ∘ d,   1 / v += d² / r                 loss: deficit + n
struct OnlineRule {
    enum class Method { perceptron, passive_aggressive, arow };
    Method method = Method::perceptron;
    int variant = 1;
    bool error_sensitive = true;
    double aggressiveness = 1;
    double gamma = 1;
};

// What a pass changes. The mean of the weights over all steps is kept without touching all weights: a step
// by x at time s adds (s + 1)·x to `second`, and the mean at time t is w − second / (t + 1). The weights
// before the first sequence count for 1, those after each sequence for its weight.
struct OnlineState {
    std::span<double> w;       // [D]
    std::span<double> second;  // [D] Σ (s + 1)·x; the variances of AROW; or empty where no mean is wanted
    double time = 0;           // sum of the weights of the sequences until now
};

class Online {
  public:
    virtual ~Online() = default;

    std::int64_t n_weights() const { return static_cast<std::int64_t>(w_.size()); }
    // Goes through the sequences of `order`. Returns the sum of the losses, each before its step and times
    // the weight of its sequence.
    double pass(const OnlineRule& rule, OnlineState& state, std::span<const std::int32_t> order);

  protected:
    explicit Online(std::int64_t n_weights)
        : w_(static_cast<std::size_t>(n_weights)), difference_(n_weights) {}

    std::vector<double> w_;  // [D] the weights that mistakes are sought with
    std::unique_ptr<Mistakes> mistakes_;

  private:
    double see(const OnlineRule& rule, OnlineState& state, std::int64_t n);
    double step(const OnlineRule& rule, OnlineState& state, std::int64_t n_wrong, double weight);
    void move(double step, OnlineState& state);
    void move_by_variance(double step, double per_count, OnlineState& state);
    void check(const OnlineRule& rule, const OnlineState& state, std::span<const std::int32_t> order) const;

    Difference difference_;
    ForkMutex mutex_;
};

// Of a chain.
class ChainOnline final : public Online {
  public:
    // Throws std::invalid_argument if things do not fit together.
    ChainOnline(std::shared_ptr<const Layout> layout, std::shared_ptr<const Design> design, Annotation gold,
                bool single_precision, int n_threads);

  private:
    std::shared_ptr<const Layout> layout_;
    std::shared_ptr<const Design> design_;
    Annotation gold_;
    ArcModel arcs_;
};

}  // namespace crfkit
