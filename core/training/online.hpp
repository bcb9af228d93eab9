// Passes of mistake-driven training over a data set.
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
#include "training/mistake_rules.hpp"

namespace crfkit {

class Online {
  public:
    virtual ~Online() = default;

    std::int64_t n_weights() const { return static_cast<std::int64_t>(w_.size()); }
    // Takes the steps of one pass over the sequences of `order`. Returns the sum of the losses, each before
    // its step and times the weight of its sequence.
    double run(const MistakeRule& rule, const RuleState& state, std::span<const std::int32_t> order);

  protected:
    explicit Online(std::int64_t n_weights)
        : w_(static_cast<std::size_t>(n_weights)), difference_(n_weights) {}

    std::vector<double> w_;  // [D] the weights that mistakes are sought with
    std::unique_ptr<Mistakes> mistakes_;

  private:
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
