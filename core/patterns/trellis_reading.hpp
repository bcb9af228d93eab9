// The trellises of many inputs, read position by position in one direction.
#pragma once

#include <cstdint>
#include <vector>

#include "base/interned_lists.hpp"
#include "data/bigrams.hpp"
#include "patterns/matcher.hpp"
#include "patterns/reach.hpp"
#include "patterns/trellis.hpp"
#include "patterns/trellis_step.hpp"

namespace crfkit {

// A start of a pattern: state, and number of its value.
struct PatternStart {
    std::int32_t state, value;
    auto operator<=>(const PatternStart&) const = default;
};

// The starts of a position whose value is not 0, common ones last; `values` are all values, ascending.
std::vector<PatternStart> starts_at(const PatternStarts& starts, const std::vector<double>& values,
                                    std::int64_t position);
// throws std::invalid_argument unless these are starts of the matcher at so many positions.
void check_starts(const PatternMatcher& matcher, std::int64_t n_positions, const PatternStarts& starts);

// What a trellis depends on, in the order in which its positions are read.
struct TrellisInput {
    std::vector<std::int32_t> labels;  // [T] number of the label set of each position
    std::vector<std::int32_t> starts;  // [T] number of its start set, from TrellisReading::start_set
    std::int64_t sequence;             // a sequence that has it, for messages
};

// All inputs advance together, one position at a time. The steps that are new at a position are made by
// several threads and numbered in the order in which the inputs first ask for them.
class TrellisReading {
  public:
    // Everything given must outlive it. `values`: those of the starts, by number; `cells`: as in
    // StepMaterial.
    TrellisReading(const PatternMatcher& matcher, const Bigrams& bigrams, bool backwards,
                   const std::vector<double>& values, const InternedLists& label_sets, bool cells = false);

    std::int32_t start_set(std::vector<PatternStart> starts);
    // The steps of each input, from the first position to the last. Throws TrellisSizeError.
    std::vector<std::vector<std::int32_t>> unroll(const std::vector<TrellisInput>& inputs,
                                                  const TrellisLimits& limits, int n_threads);

    const SortedStep& step(std::int32_t number) const { return steps_[number]; }
    std::int32_t n_steps() const { return static_cast<std::int32_t>(steps_.size()); }
    const InternedLists& alive() const { return alive_; }
    const InternedLists& levels() const { return levels_; }
    const InternedLists& active() const { return active_; }

  private:
    struct Missing {
        StepKey key;
        std::int64_t sequence, position;
    };
    void make(const std::vector<Missing>& missing, const TrellisLimits& limits, int n_threads);
    std::int32_t number(MadeStep& made);
    [[noreturn]] void fail(const Missing& where, const MadeStep& made) const;

    const PatternMatcher& matcher_;
    const bool backwards_;
    const bool anchored_;  // some pattern is active at the last position alone
    InternedLists alive_, levels_, active_;
    PatternReach reach_;
    StepMaterial material_;
    InternedLists keys_;  // of the steps, in their order
    std::vector<SortedStep> steps_;
    std::vector<std::int32_t> next_level_;  // [steps] that of the position read last
    std::int64_t n_arcs_ = 0;
};

}  // namespace crfkit
