// The parts that trees of second order are scored by.
//
//   arcs           h → m
//   siblings       h with two dependents s, m on one side that are next to each other, s nearer to h; the
//   first
//                  one has no s, after the last one there is no m, and a side without dependents has neither
//   grandparents   g → h → m
//
//   score(tree) = Σ over its parts (score of the part)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trees/arc_features.hpp"
#include "trees/candidate_arcs.hpp"

namespace crfkit {

inline constexpr std::int32_t kNoWord = -1;  // of siblings: there is none, or no further dependent

// Two siblings, or a grandparent: `other` is the sibling s or the grandparent g.
struct SecondOrderPart {
    enum class Kind : std::int8_t { siblings, grandparent } kind;
    Side side;  // of the dependents
    std::int32_t head, other, dependent;
};

// Adds the keys of the features of a part to `out`.
void add_keys(const ArcFeatures& features, const SecondOrderPart& part, KeyList& out);

// Those that trees over given arcs may have. They are numbered: arcs, then those of second order.
class TreeParts {
  public:
    std::int64_t n_words() const { return n_; }
    std::span<const Arc> arcs() const { return arcs_; }
    const std::vector<SecondOrderPart>& second_order() const { return second_order_; }
    std::int64_t n_arcs() const { return static_cast<std::int64_t>(arcs_.size()); }
    std::int64_t n_parts() const { return n_arcs() + static_cast<std::int64_t>(second_order_.size()); }
    // Scores are [arcs, R] of labelled arcs, then one for each part of second order.
    std::int64_t n_scores(std::int64_t n_labels) const { return n_arcs() * (n_labels - 1) + n_parts(); }

  protected:
    std::int32_t add_part(SecondOrderPart part) {
        second_order_.push_back(part);
        return static_cast<std::int32_t>(n_parts() - 1);
    }

    std::int64_t n_ = 0;
    std::vector<Arc> arcs_;  // ascending
    std::vector<SecondOrderPart> second_order_;
};

}  // namespace crfkit
