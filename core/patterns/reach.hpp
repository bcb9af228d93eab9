// Which states of a matcher can be reached at each position of a sequence and still complete a match.
//
// With Z(w) the labels that transition w reads and R_t the labels possible at position t:
//   active_t = {next(w) : w leaves a state of active_{t−1} ∪ starts_t, Z(w) ∩ R_t ≠ ∅}
//   useful_t = {q in active_t : some transition w of q has Z(w) ∩ R_{t+1} ≠ ∅ and next(w) activates at t + 1
//   or is in useful_{t+1}}
// Whatever is not useful need not be remembered. Each recursion is a walk through answers that are kept, so
// that a data set in which the same things happen again and again costs little.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/interned_lists.hpp"
#include "patterns/matcher.hpp"

namespace crfkit {

class PatternReach {
  public:
    // `label_sets` are lists of labels, `start_sets` lists of (state, value, count); both may grow meanwhile.
    PatternReach(const PatternMatcher& matcher, const InternedLists& label_sets,
                 const InternedLists& start_sets);

    // useful_t of one sequence as numbers in `sets`, from the label sets R_t and the start sets of its
    // positions.
    void run(std::span<const std::int32_t> labels, std::span<const std::int32_t> starts,
             std::vector<std::int32_t>& useful);

    InternedLists sets;  // lists of states, ascending

  private:
    std::int32_t find_active(std::int32_t before, std::int32_t starts, std::int32_t labels);
    std::int32_t find_useful(std::int32_t active, std::int32_t after, std::int32_t labels, bool last);
    // Marks the label sets of the matcher that have one of these labels, in reads_.
    void mark_sets(std::int32_t labels);

    const PatternMatcher& matcher_;
    const InternedLists& label_sets_;
    const InternedLists& start_sets_;
    InternedLists active_keys_, useful_keys_;  // (before, starts, labels); (active, after, labels, last)
    std::vector<std::int32_t> active_of_, useful_of_;
    std::int32_t marked_labels_ = -1;  // the list that reads_ is about
    std::vector<std::uint8_t> reads_;  // [S]
    std::vector<std::int32_t> active_;
};

}  // namespace crfkit
