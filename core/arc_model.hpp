// How the weights of arcs score the arcs that exist: one by one, or through facets of their labels.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "bigrams.hpp"
#include "lattice.hpp"
#include "layout.hpp"

namespace crfkit {

// Scores of listed arcs, and of labels that come first or last; or a direction of such scores.
struct ArcTables {
    ArcScores arcs;                  // [A]
    std::vector<double> start, end;  // [L]
};

// Depends on the layout alone. Letters: A listed arcs, L labels.
class ArcModel {
  public:
    explicit ArcModel(const Layout& layout);

    // Φ w, with w [D].
    void score(const double* w, ArcTables& tables) const;
    // out [D] += Φᵀ r, with r given for listed arcs, first and last labels.
    void add_gradient(const std::vector<double>& arcs, const std::vector<double>& start,
                      const std::vector<double>& end, double* out) const;

    const Bigrams bigrams;

  private:
    std::int64_t arcs_begin_;
    // Listed arc k is scored by the weights arc_ids_[arc_ptr_[k]..arc_ptr_[k+1]−1] of the arcs.
    std::vector<std::int64_t> arc_ptr_;  // [A + 1]
    std::vector<std::int32_t> arc_ids_;
    std::vector<std::pair<std::int32_t, std::int32_t>> start_, end_;  // (label, weight of the arcs)
};

}  // namespace crfkit
