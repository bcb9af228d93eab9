// The parts of second order of each head as an automaton (Koo and others 2010): it reads the dependents of a
// head on either side, the nearest first, and knows where the head itself hangs. All trees over given arcs,
// crossing or not.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trees/tree_parts.hpp"

namespace crfkit {

class HeadAutomata : public TreeParts {
  public:
    // `arcs` ascend.
    void build(std::int64_t n_words, std::span<const Arc> arcs, bool one_root);

    // The arcs into a word, [first_into, first_into + n_into); none into the root.
    std::int32_t first_into(std::int32_t word) const { return in_ptr_[word]; }
    std::int32_t n_into(std::int32_t word) const { return in_ptr_[word + 1] - in_ptr_[word]; }
    // The arcs out of a head on one side, the nearest first.
    const std::vector<std::int32_t>& out(std::int32_t head, Side side) const {
        return out_[side == Side::right][head];
    }
    // Numbers of parts. Siblings of the arc that is number j of its side: with number i before it, with none
    // (i = −1).
    std::int32_t siblings(std::int32_t arc, std::int64_t i) const {
        return first_siblings_[arc] + static_cast<std::int32_t>(i) + 1;
    }
    std::int32_t stop(std::int32_t arc) const { return stops_[arc]; }
    std::int32_t leaf(std::int32_t head, Side side) const {
        return leaves_[2 * head + (side == Side::right)];
    }
    // Of an arc and number k of the arcs into its head; −1 where the grandparent is the dependent itself.
    std::int32_t grandparent(std::int32_t arc, std::int64_t k) const {
        return grandparents_[grandparent_ptr_[arc] + k];
    }
    // Whether a head may have two dependents on a side.
    bool may_repeat(std::int32_t head) const { return head != 0 || !one_root_; }

    // A tree as the number of the arc into each word, and its score, of all parts, at scores [parts].
    std::vector<std::int32_t> arcs_of(const std::vector<std::int32_t>& heads) const;
    double score(const double* scores, const std::vector<std::int32_t>& tree) const;

  private:
    void add_siblings(std::int32_t head, Side side);
    void add_grandparents();

    bool one_root_ = true;
    std::vector<std::int32_t> in_ptr_;               // [n + 2]
    std::vector<std::vector<std::int32_t>> out_[2];  // by side and head
    std::vector<std::int32_t> first_siblings_, stops_, leaves_, grandparents_;
    std::vector<std::int64_t> grandparent_ptr_;
};

}  // namespace crfkit
