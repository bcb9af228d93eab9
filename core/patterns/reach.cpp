#include "patterns/reach.hpp"

#include <algorithm>

namespace crfkit {
namespace {

void sort_and_unite(std::vector<std::int32_t>& states) {
    std::sort(states.begin(), states.end());
    states.erase(std::unique(states.begin(), states.end()), states.end());
}

}  // namespace

PatternReach::PatternReach(const PatternMatcher& matcher, const InternedLists& label_sets,
                           const InternedLists& start_sets)
    : matcher_(matcher),
      label_sets_(label_sets),
      start_sets_(start_sets),
      reads_(static_cast<std::size_t>(matcher.n_sets())) {
    sets.add({});
}

void PatternReach::run(std::span<const std::int32_t> labels, std::span<const std::int32_t> starts,
                       std::vector<std::int32_t>& useful) {
    const std::size_t T = labels.size();
    active_.assign(T + 1, 0);  // of position t at t + 1; nothing is active before the first position
    for (std::size_t t = 0; t < T; ++t) active_[t + 1] = find_active(active_[t], starts[t], labels[t]);
    useful.assign(T, 0);
    for (std::size_t t = T; t-- > 1;)
        useful[t - 1] = find_useful(active_[t], useful[t], labels[t], t + 1 == T);
}

void PatternReach::mark_sets(std::int32_t labels) {
    if (marked_labels_ == labels) return;
    marked_labels_ = labels;
    const auto list = label_sets_[labels];
    for (std::int32_t s = 0; s < matcher_.n_sets(); ++s)
        reads_[s] = std::ranges::any_of(matcher_.labels_of(s), [&](std::int32_t label) {
            return std::binary_search(list.begin(), list.end(), label);
        });
}

std::int32_t PatternReach::find_active(std::int32_t before, std::int32_t starts, std::int32_t labels) {
    if (before == 0 && start_sets_[starts].empty()) return 0;
    const std::int32_t key[] = {before, starts, labels};
    const std::int32_t place = active_keys_.add(key);
    if (place < static_cast<std::int32_t>(active_of_.size())) return active_of_[place];
    mark_sets(labels);
    std::vector<std::int32_t> states;
    const auto leave = [&](std::int32_t state) {
        for (std::int64_t edge = matcher_.out_ptr[state]; edge < matcher_.out_ptr[state + 1]; ++edge)
            if (reads_[matcher_.out_set[edge]]) states.push_back(matcher_.out_next[edge]);
    };
    for (const std::int32_t state : sets[before]) leave(state);
    const auto list = start_sets_[starts];
    for (std::size_t i = 0; i < list.size(); i += 3) leave(list[i]);
    sort_and_unite(states);
    active_of_.push_back(sets.add(states));
    return active_of_.back();
}

std::int32_t PatternReach::find_useful(std::int32_t active, std::int32_t after, std::int32_t labels,
                                       bool last) {
    if (active == 0) return 0;
    const std::int32_t key[] = {active, after, labels, last};
    const std::int32_t place = useful_keys_.add(key);
    if (place < static_cast<std::int32_t>(useful_of_.size())) return useful_of_[place];
    mark_sets(labels);
    const auto still = sets[after];
    std::vector<std::int32_t> states;
    for (const std::int32_t state : sets[active])
        for (std::int64_t edge = matcher_.out_ptr[state]; edge < matcher_.out_ptr[state + 1]; ++edge) {
            const std::int32_t next = matcher_.out_next[edge];
            const bool activates = matcher_.activates[next] >= 0 && (last || !matcher_.last_only[next]);
            if (reads_[matcher_.out_set[edge]] &&
                (activates || std::binary_search(still.begin(), still.end(), next))) {
                states.push_back(state);
                break;
            }
        }
    useful_of_.push_back(sets.add(states));
    return useful_of_.back();
}

}  // namespace crfkit
