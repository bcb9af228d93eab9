#include "patterns/trellis_size.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "patterns/trellis_reading.hpp"

namespace crfkit {
namespace {

// For each position, the positions that patterns reach back over: the earliest start is passed on by
// state.
std::vector<std::int64_t> find_spans(const PatternMatcher& matcher, const PatternStarts& starts,
                                     const TrellisInput& input, const InternedLists& label_sets,
                                     const InternedLists& start_sets) {
    PatternReach reach(matcher, label_sets, start_sets);
    std::vector<std::int32_t> useful;
    reach.run(input.labels, input.starts, useful);
    std::vector<std::int64_t> spans;
    std::unordered_map<std::int32_t, std::int64_t> alive, next;  // state → earliest start
    for (std::int64_t t = 0; t < static_cast<std::int64_t>(useful.size()); ++t) {
        for (std::int64_t i = starts.ptr[t]; i < starts.ptr[t + 1]; ++i)
            alive.try_emplace(starts.states[i], t);
        const auto still = reach.sets[useful[t]];
        std::int64_t earliest = t;
        next.clear();
        for (const auto& [state, start] : alive)
            for (std::int64_t edge = matcher.out_ptr[state]; edge < matcher.out_ptr[state + 1]; ++edge) {
                const std::int32_t to = matcher.out_next[edge];
                const bool goes_on = std::binary_search(still.begin(), still.end(), to);
                const bool last = t + 1 == static_cast<std::int64_t>(useful.size());
                if (!goes_on && (matcher.activates[to] < 0 || (matcher.last_only[to] && !last))) continue;
                earliest = std::min(earliest, start);
                if (!goes_on) continue;
                const auto [place, is_new] = next.try_emplace(to, start);
                if (!is_new) place->second = std::min(place->second, start);
            }
        spans.push_back(t - earliest + 1);
        alive.swap(next);
    }
    return spans;
}

}  // namespace

Partition partition_of(const PatternMatcher& matcher, const PatternStarts& starts,
                       const TrellisLimits& limits) {
    check_starts(matcher, static_cast<std::int64_t>(starts.ptr.size()) - 1, starts);
    const Bigrams none(matcher.n_labels, {}, {}, true);
    std::vector<double> values(starts.values.begin(), starts.values.end());
    if (values.empty()) values.push_back(1.0);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::vector<std::int32_t> all(static_cast<std::size_t>(matcher.n_labels));
    std::iota(all.begin(), all.end(), 0);
    InternedLists label_sets;
    label_sets.add(all);
    TrellisReading reading(matcher, none, false, values, label_sets, true);
    TrellisInput input{{}, {}, 0};
    for (std::size_t t = 0; t + 1 < starts.ptr.size(); ++t) {
        input.labels.push_back(0);
        input.starts.push_back(reading.start_set(starts_at(starts, values, static_cast<std::int64_t>(t))));
    }
    Partition out;
    const auto steps = reading.unroll({input}, limits, 1)[0];
    for (std::size_t t = 0; t < input.labels.size(); ++t) {
        out.cells.push_back(reading.step(steps[t]).step.n_after);
        out.transitions.push_back(reading.step(steps[t]).step.n_transitions);
    }
    out.spans = find_spans(matcher, starts, input, label_sets, reading.alive());
    return out;
}

}  // namespace crfkit
