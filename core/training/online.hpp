// Passes of mistake-driven training over a data set.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "training/data_loss.hpp"
#include "training/mistake_rules.hpp"

namespace crfkit {

class Online {
  public:
    // The loss must outlive it.
    explicit Online(DataLoss& loss)
        : w_(static_cast<std::size_t>(loss.n_weights)),
          mistakes_(loss.mistakes(w_.data())),
          difference_(loss.n_weights) {}

    // Takes the steps of one pass over the sequences of `order`. Returns the sum of the losses, each before
    // its step and times the weight of its sequence.
    double run(const MistakeRule& rule, const RuleState& state, std::span<const std::int32_t> order);

  private:
    std::vector<double> w_;  // [D] the weights that mistakes are sought with
    std::unique_ptr<Mistakes> mistakes_;
    Difference difference_;
};

}  // namespace crfkit
