#include "patterns/matcher.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/interned_lists.hpp"
#include "base/lists.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kEdgesPerConfiguration = 16;  // to be followed for each that may be found

[[noreturn]] void fail(const std::string& what) { throw std::invalid_argument("pattern matcher: " + what); }

void check_disjoint(const PatternMatcher& matcher) {
    std::vector<std::int32_t> reader(static_cast<std::size_t>(matcher.n_labels),
                                     -1);  // the last state that did
    for (std::int32_t q = 0; q < matcher.n_states(); ++q)
        for (std::int64_t edge = matcher.out_ptr[q]; edge < matcher.out_ptr[q + 1]; ++edge)
            for (const std::int32_t label : matcher.labels_of(matcher.out_set[edge])) {
                if (reader[label] == q)
                    fail("state " + std::to_string(q) + " has two transitions for label " +
                         std::to_string(label) + ", expected disjoint sets");
                reader[label] = q;
            }
}

}  // namespace

PatternMatcher::PatternMatcher(std::int32_t labels, std::span<const std::int64_t> sets_at,
                               std::span<const std::int32_t> sets, std::span<const std::int64_t> outs_at,
                               std::span<const std::int32_t> out_sets,
                               std::span<const std::int32_t> out_nexts, std::span<const std::int32_t> weights,
                               std::span<const std::uint8_t> at_last)
    : n_labels(labels),
      set_ptr(copy(sets_at)),
      set_labels(copy(sets)),
      out_ptr(copy(outs_at)),
      out_set(copy(out_sets)),
      out_next(copy(out_nexts)),
      activates(copy(weights)),
      last_only(copy(at_last)) {
    if (labels < 1) fail("there are no labels");
    check_pointers(set_ptr, set_labels.size(), "pattern matcher: set_ptr");
    check_pointers(out_ptr, out_set.size(), "pattern matcher: out_ptr");
    if (out_next.size() != out_set.size()) fail("out_set and out_next must have the same length");
    if (out_ptr.size() != activates.size() + 1 || last_only.size() != activates.size())
        fail("out_ptr, activates and last_only must be of the same number of states");
    check_range(set_labels, 0, labels, "pattern matcher: set_labels");
    check_range(out_set, 0, n_sets(), "pattern matcher: out_set");
    check_range(out_next, 0, n_states(), "pattern matcher: out_next");
    check_range(activates, -1, INT32_MAX, "pattern matcher: activates");
    for (std::int32_t s = 0; s < n_sets(); ++s) {
        const auto set = labels_of(s);
        if (set.empty() || std::adjacent_find(set.begin(), set.end(), std::greater_equal<>()) != set.end())
            fail("set " + std::to_string(s) + " must list at least one label, ascending");
    }
    check_disjoint(*this);
    n_weights = activates.empty() ? 0 : *std::max_element(activates.begin(), activates.end()) + 1;
}

namespace {

// Follows all paths from the start states, and writes each that activates a weight as a chain read from its
// end.
class Turning {
  public:
    Turning(const PatternMatcher& matcher, std::int64_t most)
        : matcher_(matcher), most_(most), on_path_(static_cast<std::size_t>(matcher.n_states()), 0) {}

    // False where a loop or too many configurations are met.
    bool follow(std::int32_t first) {
        struct Place {
            std::int32_t state;
            std::int64_t edge;  // the next one to follow
        };
        std::vector<Place> path{{first, matcher_.out_ptr[first]}};
        std::vector<std::int32_t> sets;  // read so far
        on_path_[first] = 1;
        while (!path.empty()) {
            Place& here = path.back();
            if (here.edge == matcher_.out_ptr[here.state + 1]) {
                on_path_[here.state] = 0;
                path.pop_back();
                if (!sets.empty()) sets.pop_back();
                continue;
            }
            const std::int64_t edge = here.edge++;
            const std::int32_t next = matcher_.out_next[edge];
            if (on_path_[next] || ++n_followed_ > kEdgesPerConfiguration * most_) return false;
            on_path_[next] = 1;
            sets.push_back(matcher_.out_set[edge]);
            path.push_back({next, matcher_.out_ptr[next]});
            if (matcher_.activates[next] >= 0) {
                if (static_cast<std::int64_t>(found.size()) == most_) return false;
                found.push_back({static_cast<std::int32_t>(sets.size()),
                                 chain(sets, matcher_.activates[next]), matcher_.last_only[next] != 0});
            }
        }
        return true;
    }

    PatternMatcher turned() const {
        std::vector<std::int64_t> out_ptr{0};
        std::vector<std::int32_t> out_set, out_next, activates;
        for (std::int32_t q = 0; q < states_.size(); ++q) {
            const auto state = states_[q];
            if (state.size() == 2) {
                out_set.push_back(state[0]);
                out_next.push_back(state[1]);
            }
            activates.push_back(state.size() == 2 ? -1 : state[0]);
            out_ptr.push_back(static_cast<std::int64_t>(out_set.size()));
        }
        const std::vector<std::uint8_t> never(activates.size(), 0);
        return {matcher_.n_labels, matcher_.set_ptr, matcher_.set_labels, out_ptr,
                out_set,           out_next,         activates,           never};
    }

    std::vector<ReversedMatcher::Configuration> found;

  private:
    // The state that reads these sets from the last to the first, and then activates its weight.
    std::int32_t chain(const std::vector<std::int32_t>& sets, std::int32_t weight) {
        std::int32_t state = states_.add(std::span(&weight, 1));
        for (const std::int32_t set : sets) {
            const std::int32_t reads[] = {set, state};
            state = states_.add(reads);
        }
        return state;
    }

    const PatternMatcher& matcher_;
    const std::int64_t most_;
    std::int64_t n_followed_ = 0;
    std::vector<std::uint8_t> on_path_;  // [Q]
    InternedLists states_;               // {weight} or {set, next}
};

}  // namespace

std::optional<ReversedMatcher> reversed(const PatternMatcher& matcher, std::span<const std::uint8_t> starts,
                                        std::int64_t most) {
    Turning turning(matcher, most);
    std::vector<std::int64_t> ptr{0};
    for (std::int32_t q = 0; q < matcher.n_states(); ++q) {
        if (starts[q] && !turning.follow(q)) return std::nullopt;
        ptr.push_back(static_cast<std::int64_t>(turning.found.size()));
    }
    return ReversedMatcher{turning.turned(), std::move(ptr), std::move(turning.found)};
}

}  // namespace crfkit
