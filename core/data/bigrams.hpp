// Which arcs exist: a set of pairs (label before, label after), looked up by either side.
//
// Letters: L labels, A listed pairs between labels. `before` = L stands for the start of a sequence, `after`
// = L for its end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace crfkit {

class Bigrams {
  public:
    // Only the listed pairs exist; with `soft`, all others exist too, with score 0. Throws
    // std::invalid_argument for pairs out of range or listed twice.
    Bigrams(std::int32_t n_labels, std::span<const std::int32_t> before, std::span<const std::int32_t> after,
            bool soft);

    bool operator==(const Bigrams&) const = default;

    std::int32_t n_labels;
    bool soft;
    bool empty_exists;                    // whether the empty sequence exists
    std::vector<std::uint8_t> can_start;  // [L] whether a label may come first
    std::vector<std::uint8_t> can_end;    // [L] whether a label may come last
    std::vector<std::int64_t> in_ptr;     // [L + 1] the arcs into label b are in_ptr[b]..in_ptr[b+1]−1
    std::vector<std::int32_t> in_before;  // [A] ascending within each label after
    std::vector<std::int64_t> out_ptr;    // [L + 1] the arcs out of label a
    std::vector<std::int32_t> out_after;  // [A] ascending within each label before
    std::vector<std::int32_t> out_arc;    // [A] their numbers in the order of `in_before`

    std::int64_t n_arcs() const { return static_cast<std::int64_t>(in_before.size()); }

    // Number of the listed arc a → b, in the order of `in_before`; −1 when it is not listed.
    std::int32_t find(std::int32_t a, std::int32_t b) const {
        if (!table_.empty()) return table_[static_cast<std::size_t>(a) * n_labels + b];
        return search(a, b);
    }
    // Whether an arc a → b exists.
    bool exists(std::int32_t a, std::int32_t b) const { return soft || find(a, b) >= 0; }

  private:
    std::int32_t search(std::int32_t a, std::int32_t b) const;

    std::vector<std::int32_t> table_;  // [L, L] find() for moderate L, else empty
};

}  // namespace crfkit
