// Why a position of a dense chain has a label (paths/label_context.hpp), from its scaled messages.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/kernels.hpp"
#include "paths/label_context.hpp"

namespace crfkit {

// With the messages of kernels.hpp, W_t the arcs into position t and b the label of position i,
//
//   P(y_{i−1} = a | b) ∝ forward_{i−1}(a) W_i(a, b),     P(y_{i+1} = c | b) ∝ W_{i+1}(b, c) pushed_{i+1}(c)
//   log F(b) = log Z(b) − log backward_i(b) + the same for all b
//
// so that `left` and `right` are those of paths/label_context.hpp but for two numbers that are the same for
// all labels of a position, and add up to log Z: they serve for differences between labels.
class ChainContext {
  public:
    // After sum_product, with weight 1. scores [T, S]; arcs [L, S] where a position has none of its own [T].
    // All must outlive it.
    ChainContext(const Messages<double>& messages, const double* scores, const double* arcs,
                 std::vector<const double*> own_arcs, std::int64_t n_positions, std::int32_t n_labels,
                 std::int64_t stride)
        : m_(messages),
          scores_(scores),
          arcs_(arcs),
          own_arcs_(std::move(own_arcs)),
          n_positions_(n_positions),
          n_labels_(n_labels),
          stride_(stride) {}

    LabelContext of(std::int64_t i, std::int32_t label) const;

  private:
    // The scores of the arcs into position t, row = label before.
    const double* arcs_into(std::int64_t t) const {
        return !own_arcs_.empty() && own_arcs_[t] ? own_arcs_[t] : arcs_;
    }
    // E[score of the arc] and the likeliest neighbour, P(neighbour = k) ∝ weights[k] · exp(scores[k · step]).
    std::pair<double, std::int32_t> neighbours(const double* weights, const double* scores,
                                               std::int64_t step) const;

    const Messages<double> m_;
    const double* const scores_;
    const double* const arcs_;
    const std::vector<const double*> own_arcs_;
    const std::int64_t n_positions_;
    const std::int32_t n_labels_;
    const std::int64_t stride_;
};

}  // namespace crfkit
