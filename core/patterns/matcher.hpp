// All patterns of a model as one automaton over labels.
//
// A pattern begins at a position in a start state and reads the labels from there on. A state has a few
// transitions (label set, next state) with disjoint sets: at most one of them reads a label, and where none
// does the match has failed. Entering a state may activate a weight; the match may continue.
//
// Letters: L labels, S label sets, Q states.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace crfkit {

struct PatternMatcher {
    // Throws std::invalid_argument if the arrays do not fit together.
    PatternMatcher(std::int32_t n_labels, std::span<const std::int64_t> set_ptr,
                   std::span<const std::int32_t> set_labels, std::span<const std::int64_t> out_ptr,
                   std::span<const std::int32_t> out_set, std::span<const std::int32_t> out_next,
                   std::span<const std::int32_t> activates, std::span<const std::uint8_t> last_only);

    std::int32_t n_labels;
    std::vector<std::int64_t> set_ptr;     // [S + 1]
    std::vector<std::int32_t> set_labels;  // ascending within each set
    std::vector<std::int64_t> out_ptr;     // [Q + 1] the transitions of each state
    std::vector<std::int32_t> out_set, out_next;
    std::vector<std::int32_t> activates;  // [Q] the weight that entering it activates; −1: none
    std::vector<std::uint8_t> last_only;  // [Q] whether only at the last position
    std::int32_t n_weights;               // one more than the highest of `activates`

    std::int32_t n_states() const { return static_cast<std::int32_t>(activates.size()); }
    std::int32_t n_sets() const { return static_cast<std::int32_t>(set_ptr.size()) - 1; }
    std::span<const std::int32_t> labels_of(std::int32_t set) const {
        return std::span(set_labels).subspan(set_ptr[set], set_ptr[set + 1] - set_ptr[set]);
    }
};

// A matcher that reads from the last position to the first. Only patterns without loops can be reversed: a
// start in state q is then the configurations configurations[ptr[q]..ptr[q+1]−1], one for each path to a
// state that activates a weight.
struct ReversedMatcher {
    struct Configuration {
        std::int32_t length;  // in positions
        std::int32_t state;   // its start in `matcher`, at the position where it ends
        bool last_only;       // it must end at the last position of the sequence
    };
    PatternMatcher matcher;
    std::vector<std::int64_t> ptr;  // [Q + 1]
    std::vector<Configuration> configurations;
};

// Reverses the patterns that begin in the states marked in `starts` [Q]; nothing if one has a loop or there
// are more than `most` configurations.
std::optional<ReversedMatcher> reversed(const PatternMatcher& matcher, std::span<const std::uint8_t> starts,
                                        std::int64_t most);

}  // namespace crfkit
