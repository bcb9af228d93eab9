// One step of a trellis, made from the level before it.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/interned_lists.hpp"
#include "data/bigrams.hpp"
#include "patterns/matcher.hpp"
#include "patterns/trellis.hpp"

namespace crfkit {

// What steps are made of, for one direction of reading. All lists are known by their numbers.
struct StepMaterial {
    const PatternMatcher& matcher;
    const Bigrams& bigrams;
    bool backwards;                     // positions are read from the last to the first
    const std::vector<double>& values;  // of the starts, by number
    const InternedLists& label_sets;    // lists of labels, ascending
    const InternedLists& alive;         // lists of (state, value, count): starts, and what is alive
    const InternedLists& levels;        // lists of (label, alive)
    const InternedLists& state_sets;    // lists of states
    bool cells = false;                 // nodes have no label: those that go on alike are one

    // Whether the label of a node matters for what follows, beside what is alive.
    bool linked() const { return !bigrams.soft || bigrams.n_arcs() > 0; }
};

// From the nodes of a level, read the labels of a position at which some patterns start.
struct StepKey {
    std::int32_t level, starts, labels;
    std::int32_t useful;  // states that are worth remembering afterwards
    std::int32_t last;    // 1: patterns may fire that do so at the last position alone; 2: it is the sink
};

struct StepArc {
    std::int32_t source, destination;  // in the numbers of the step
    std::int32_t arc, active;
};

// The nodes that a step leads to, and its arcs.
struct StepLinks {
    bool too_large = false;
    std::int32_t n_pools = 0;
    std::vector<std::int32_t> node_labels, node_alive;  // [n_after] in the order in which they were met
    std::vector<StepArc> arcs;
    std::int64_t n_transitions = 0;
};

// A step with lists of its own: `node_alive` and `StepArc::active` are numbers in `alive` and in `active`.
struct MadeStep : StepLinks {
    std::int32_t n_before = 0;
    InternedLists alive, active;  // active: (weight, both halves of its value)
};

// Makes steps, one after the other; each thread has its own.
class StepMaker {
  public:
    explicit StepMaker(const StepMaterial& material);

    MadeStep make(const StepKey& key, const TrellisLimits& limits);

  private:
    // What reading a label leads to: numbers in `alive` and `active` of the step; active −1: nothing.
    struct Outcome {
        std::int32_t alive, active;
        bool operator==(const Outcome&) const = default;
    };
    using Elements = std::vector<std::int32_t>;  // (state, value, count), one after the other

    void make_sink();
    void read_starts(const StepKey& key);
    std::size_t read_alive(std::int32_t alive);
    void follow(std::span<const std::int32_t> elements, std::vector<Elements>& arrivals,
                std::vector<std::int32_t>* touched) const;
    Outcome outcome(const Elements& arrived);
    void link(const StepKey& key, bool by_label, const TrellisLimits& limits);
    bool link_group(const StepKey& key, std::span<const std::int32_t> nodes, const TrellisLimits& limits);
    std::int64_t count_transitions(const std::vector<Outcome>& row,
                                   const std::vector<std::size_t>& possible) const;
    Outcome common_outcome(std::span<const std::size_t> rows, std::size_t c) const;
    std::int32_t find_node(std::int32_t label, std::int32_t alive);
    bool exists(std::int32_t before, std::int32_t label, std::int32_t& arc) const;

    const StepMaterial& material_;
    MadeStep step_;
    bool last_ = false;
    std::vector<std::int32_t> labels_;                      // [C] the labels that may be read
    std::vector<std::int32_t> place_;                       // [L] place of a label in labels_; −1: not there
    std::vector<std::uint8_t> useful_;                      // [Q]
    std::vector<Elements> from_starts_;                     // [C] what the starts arrive as
    std::vector<Elements> arrived_;                         // [C] scratch
    std::vector<Outcome> plain_;                            // [C] with the starts alone
    std::vector<std::vector<Outcome>> rows_;                // [C] each, for one alive set
    std::unordered_map<std::int32_t, std::size_t> row_of_;  // alive set → row
    InternedLists arrivals_;                                // known arguments of outcome()
    std::vector<Outcome> outcomes_;                         // and its answers
    InternedLists nodes_;                                   // (label, alive)
};

// The arcs of a finished step, in the order of the table; numbers of levels and active sets are global.
struct SortedStep {
    Step step;
    std::vector<std::int32_t> source, destination, arc, active;
    std::vector<std::int32_t> in_ptr, out_ptr, out_arc;
};

// Sorts the arcs by destination and by source. With `backwards`, what was read from the last position to the
// first is turned round: the level before becomes the level after.
SortedStep sort_step(std::int32_t before, std::int32_t after, const MadeStep& made, bool backwards);

}  // namespace crfkit
