// The arcs of all steps of a table in exp space, as the kernels for batches of sequences read them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "kernels/kernels.hpp"
#include "patterns/step_scores.hpp"
#include "patterns/trellis.hpp"

namespace crfkit {

template <class Real>
class StepWeights {
  public:
    // The table must outlive it.
    StepWeights(const StepTable& table, const Kernels<Real>& kernels);

    // weight = exp(score − maximum of its step), 1 for silent arcs.
    void set(const StepScores& scores, int n_threads);

    StepArcs<Real> of(const Step& step) const;
    double maximum(std::int32_t step) const { return maxima_[step]; }
    // Whether the scores of a step lie too far apart for scaled messages.
    bool is_wide(std::int32_t step) const { return wide_[step] != 0; }
    // Of an arc, counted through the whole table.
    double weight(std::int64_t arc) const { return static_cast<double>(weight_[arc]); }
    bool is_silent(std::int64_t arc) const { return silent_[arc] != 0; }

  private:
    const StepTable& table_;
    const Kernels<Real>& kernels_;
    std::vector<std::int32_t> reached_;  // [arcs] see StepArcs
    std::vector<std::uint8_t> silent_;   // [arcs]
    Buffer<Real> weight_, out_weight_;   // [arcs] by destination, by source
    std::vector<double> maxima_;         // [steps]
    std::vector<std::uint8_t> wide_;     // [steps]
};

extern template class StepWeights<float>;
extern template class StepWeights<double>;

}  // namespace crfkit
