// Why a position of a dense chain has a label (paths/label_context.hpp), from its scaled messages.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/compensated_sum.hpp"
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
    // After sum_product, with weight 1, of n_positions states with these scores [T, S]; of arcs the tables
    // that the kernel read, and their scores: arc_scores [L, S] where a position has none of its own [T]. All
    // must outlive it.
    ChainContext(const Messages<double>& messages, const double* scores, std::int64_t n_positions,
                 const ArcTable<double>& arcs, const PositionArcs<double>* position_arcs,
                 const double* arc_scores, std::vector<const double*> own_arc_scores)
        : m_(messages),
          scores_(scores),
          n_positions_(n_positions),
          arcs_(arcs),
          position_arcs_(position_arcs),
          arc_scores_(arc_scores),
          own_arc_scores_(std::move(own_arc_scores)),
          n_labels_(arcs.n_labels),
          stride_(arcs.stride) {}

    LabelContext of(std::int64_t i, std::int32_t label) const;
    // Of `size` positions from `first` on, where log Z > −inf.
    WindowContext window(double log_z, std::int64_t first, std::int64_t size) const;

  private:
    // The scores of the arcs into position t, row = label before.
    const double* arcs_into(std::int64_t t) const {
        return !own_arc_scores_.empty() && own_arc_scores_[t] ? own_arc_scores_[t] : arc_scores_;
    }
    bool has_own_arcs(std::int64_t t) const { return position_arcs_ && position_arcs_[t].weight; }
    // Adds to `total`, of the positions before t, so that log α(b) = log forward_t(b) + total, where α is the
    // sum over all beginnings up to position t.
    void add_scale(std::int64_t t, Total& total) const;
    // E[score of the arcs into position t]
    double mean_arcs(std::int64_t t) const;
    // E[score of the arc] and the likeliest neighbour, P(neighbour = k) ∝ weights[k] · exp(scores[k · step]).
    std::pair<double, std::int32_t> neighbours(const double* weights, const double* scores,
                                               std::int64_t step) const;

    const Messages<double> m_;
    const double* const scores_;
    const std::int64_t n_positions_;
    const ArcTable<double>& arcs_;
    const PositionArcs<double>* const position_arcs_;
    const double* const arc_scores_;
    const std::vector<const double*> own_arc_scores_;
    const std::int32_t n_labels_;
    const std::int64_t stride_;
};

}  // namespace crfkit
