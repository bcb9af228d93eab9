#include "patterns/trellis_reading.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>

#include "base/interruption.hpp"
#include "base/threads.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kStepsAtOnce = 32;  // made before the limit of arcs is looked at

}  // namespace

void check_starts(const PatternMatcher& matcher, std::int64_t n_positions, const PatternStarts& starts) {
    const auto fail = [](const char* what) { throw std::invalid_argument(std::string("starts: ") + what); };
    const auto n = static_cast<std::int64_t>(starts.states.size());
    if (static_cast<std::int64_t>(starts.ptr.size()) != n_positions + 1 || starts.ptr.front() != 0 ||
        starts.ptr.back() != n || !std::is_sorted(starts.ptr.begin(), starts.ptr.end()))
        fail("there must be one list for each position");
    if (!starts.values.empty() && starts.values.size() != starts.states.size())
        fail("there must be one value for each, or none at all");
    for (const std::int32_t state : starts.states)
        if (state < 0 || state >= matcher.n_states())
            fail("one is in a state that the matcher does not have");
    for (const std::int32_t state : starts.common)
        if (state < 0 || state >= matcher.n_states()) fail("a common one is in no state of the matcher");
    for (const double value : starts.values)
        if (!std::isfinite(value)) fail("one has a value that is not finite");
}

std::vector<PatternStart> starts_at(const PatternStarts& starts, const std::vector<double>& values,
                                    std::int64_t position) {
    std::vector<PatternStart> out;
    const auto add = [&](std::int32_t state, double value) {
        const auto place = std::lower_bound(values.begin(), values.end(), value) - values.begin();
        if (value != 0) out.push_back({state, static_cast<std::int32_t>(place)});
    };
    for (std::int64_t i = starts.ptr[position]; i < starts.ptr[position + 1]; ++i)
        add(starts.states[i], starts.values.empty() ? 1.0 : starts.values[i]);
    for (const std::int32_t state : starts.common) add(state, 1.0);
    return out;
}

TrellisReading::TrellisReading(const PatternMatcher& matcher, const Bigrams& bigrams, bool backwards,
                               const std::vector<double>& values, const InternedLists& label_sets, bool cells)
    : matcher_(matcher),
      backwards_(backwards),
      anchored_(std::ranges::any_of(matcher.last_only, [](std::uint8_t only) { return only != 0; })),
      reach_(matcher, label_sets, alive_),
      material_{matcher, bigrams, backwards, values, label_sets, alive_, levels_, reach_.sets, cells} {
    alive_.add({});
    const std::int32_t edge[] = {-1, 0};  // the one node beyond the first position, or the last
    levels_.add(edge);
}

std::int32_t TrellisReading::start_set(std::vector<PatternStart> starts) {
    std::sort(starts.begin(), starts.end());
    std::vector<std::int32_t> list;
    for (std::size_t i = 0; i < starts.size();) {
        const PatternStart start = starts[i];
        std::int32_t count = 0;
        for (; i < starts.size() && starts[i] == start; ++i) ++count;
        list.insert(list.end(), {start.state, start.value, count});
    }
    return alive_.add(list);
}

std::vector<std::vector<std::int32_t>> TrellisReading::unroll(const std::vector<TrellisInput>& inputs,
                                                              const TrellisLimits& limits, int n_threads) {
    std::vector<std::vector<std::int32_t>> useful(inputs.size()), lists(inputs.size());
    std::vector<std::int32_t> level(inputs.size(), 0);
    std::size_t longest = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        check_interruption();
        reach_.run(inputs[k].labels, inputs[k].starts, useful[k]);
        longest = std::max(longest, inputs[k].labels.size());
    }
    std::vector<Missing> missing;
    for (std::size_t r = 0; r <= longest; ++r) {
        check_interruption();
        for (std::size_t k = 0; k < inputs.size(); ++k) {
            const std::size_t T = inputs[k].labels.size();
            if (T == 0 || r > T) continue;
            const StepKey key = r < T ? StepKey{level[k], inputs[k].starts[r], inputs[k].labels[r],
                                                useful[k][r], r + 1 == T && anchored_ ? 1 : 0}
                                      : StepKey{level[k], 0, 0, 0, 2};
            const std::int32_t list[] = {key.level, key.starts, key.labels, key.useful, key.last};
            lists[k].push_back(keys_.add(list));
            if (lists[k].back() == n_steps() + static_cast<std::int32_t>(missing.size()))
                missing.push_back({key, inputs[k].sequence,
                                   static_cast<std::int64_t>(backwards_ ? T - 1 - std::min(r, T - 1) : r)});
        }
        make(missing, limits, n_threads);
        missing.clear();
        for (std::size_t k = 0; k < inputs.size(); ++k)
            if (lists[k].size() > r) level[k] = next_level_[lists[k][r]];
    }
    if (backwards_)
        for (auto& list : lists) std::reverse(list.begin(), list.end());
    return lists;
}

void TrellisReading::make(const std::vector<Missing>& missing, const TrellisLimits& limits, int n_threads) {
    std::vector<std::unique_ptr<StepMaker>> makers(static_cast<std::size_t>(std::max(n_threads, 1)));
    const auto n = static_cast<std::int64_t>(missing.size());
    for (std::int64_t first = 0; first < n; first += kStepsAtOnce) {
        const std::int64_t count = std::min(kStepsAtOnce, n - first);
        std::vector<MadeStep> made(static_cast<std::size_t>(count));
        parallel_for(count, n_threads, [&](std::int64_t i, int worker) {
            if (!makers[worker]) makers[worker] = std::make_unique<StepMaker>(material_);
            made[i] = makers[worker]->make(missing[first + i].key, limits);
        });
        const std::int32_t base = n_steps();
        for (std::int64_t i = 0; i < count; ++i) {
            n_arcs_ += static_cast<std::int64_t>(made[i].arcs.size());
            if (made[i].too_large || n_arcs_ > limits.max_arcs) fail(missing[first + i], made[i]);
            next_level_.push_back(number(made[i]));
        }
        steps_.resize(next_level_.size());
        parallel_for(count, n_threads, [&](std::int64_t i, int) {
            steps_[base + i] =
                sort_step(missing[first + i].key.level, next_level_[base + i], made[i], backwards_);
        });
    }
}

// Gives the lists of a step their numbers, and its nodes the order of their level. Returns the level.
std::int32_t TrellisReading::number(MadeStep& made) {
    std::vector<std::int32_t> alive, active;
    for (std::int32_t i = 0; i < made.alive.size(); ++i) alive.push_back(alive_.add(made.alive[i]));
    for (std::int32_t i = 0; i < made.active.size(); ++i) active.push_back(active_.add(made.active[i]));
    const auto n = static_cast<std::int32_t>(made.node_labels.size());
    for (std::int32_t& set : made.node_alive) set = alive[set];
    std::vector<std::int32_t> order(static_cast<std::size_t>(n)), place(order.size()), level;
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int32_t i, std::int32_t j) {
        return std::pair(made.node_labels[i], made.node_alive[i]) <
               std::pair(made.node_labels[j], made.node_alive[j]);
    });
    for (std::int32_t i = 0; i < n; ++i) {
        place[order[i]] = i;
        level.insert(level.end(), {made.node_labels[order[i]], made.node_alive[order[i]]});
    }
    const std::int32_t first = made.n_before + made.n_pools;
    for (StepArc& arc : made.arcs) {
        if (arc.destination >= first) arc.destination = first + place[arc.destination - first];
        if (arc.active >= 0) arc.active = active[arc.active];
    }
    return levels_.add(level);
}

void TrellisReading::fail(const Missing& where, const MadeStep& made) const {
    std::vector<std::uint8_t> met(static_cast<std::size_t>(matcher_.n_states()), 0);
    std::vector<std::int32_t> open, weights;
    const auto meet = [&](std::int32_t state) {
        if (!met[state]) open.push_back(state);
        met[state] = 1;
    };
    for (const std::int32_t state : reach_.sets[where.key.useful]) meet(state);
    while (!open.empty()) {
        const std::int32_t state = open.back();
        open.pop_back();
        for (std::int64_t edge = matcher_.out_ptr[state]; edge < matcher_.out_ptr[state + 1]; ++edge) {
            const std::int32_t next = matcher_.out_next[edge];
            if (matcher_.activates[next] >= 0) weights.push_back(matcher_.activates[next]);
            meet(next);
        }
    }
    std::sort(weights.begin(), weights.end());
    weights.erase(std::unique(weights.begin(), weights.end()), weights.end());
    throw TrellisSizeError(where.sequence, where.position, static_cast<std::int64_t>(made.node_labels.size()),
                           n_arcs_, std::move(weights));
}

}  // namespace crfkit
