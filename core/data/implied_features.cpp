#include "data/implied_features.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/threads.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kPositionsPerTask = 4096;

void lower(std::atomic<std::int32_t>& number, std::int32_t to) {
    for (std::int32_t now = number.load(std::memory_order_relaxed); to < now;)
        if (number.compare_exchange_weak(now, to, std::memory_order_relaxed)) return;
}

}  // namespace

// Counts, minima and intersections are the same in whatever order threads come to the positions.
ImpliedFeatures::ImpliedFeatures(const SplitFeatures& features, std::int64_t n_rows, std::int64_t n_pairs,
                                 int n_threads)
    : rows_(features.rows),
      pairs_(features.entries),
      n_rows_(n_rows),
      n_pairs_(n_pairs),
      known_(new Known[static_cast<std::size_t>(n_rows + n_pairs)]),
      anchors_(static_cast<std::size_t>(n_rows + n_pairs)) {
    const auto each_position = [&](void (ImpliedFeatures::*function)(std::int64_t, Marks&)) {
        const std::int64_t n = n_positions(), n_tasks = (n + kPositionsPerTask - 1) / kPositionsPerTask;
        std::vector<Marks> all_marks(static_cast<std::size_t>(std::max(1, n_threads)));
        parallel_for(n_tasks, n_threads, [&](std::int64_t task, int worker) {
            Marks& marks = all_marks[static_cast<std::size_t>(worker)];
            if (marks.empty()) marks = this->marks();
            const std::int64_t end = std::min(n, (task + 1) * kPositionsPerTask);
            for (std::int64_t t = task * kPositionsPerTask; t < end; ++t) (this->*function)(t, marks);
        });
    };
    each_position(&ImpliedFeatures::count);
    for (std::int64_t f = 0; f < n_rows + n_pairs; ++f) start(known_[f]);
    each_position(&ImpliedFeatures::narrow);
    for (std::int64_t f = 0; f < n_rows + n_pairs; ++f) anchors_[f] = may_anchor(known_[f]);
}

bool ImpliedFeatures::pays(std::int64_t n, int m) const {
    constexpr double row_cost = 8, block = 6144;
    const double n_blocks = std::max(1.0, static_cast<double>(n_positions()) / block),
                 n_with = n_blocks * -std::expm1(-static_cast<double>(n) / n_blocks);  // blocks that have it
    return n >= kFewest && m > 1 && static_cast<double>(n * (m - 1)) >= row_cost * n_with + 2 * m;
}

// What pays for n positions pays for more.
bool ImpliedFeatures::may_anchor(const Known& feature) const {
    const std::int32_t n = feature.count.load(std::memory_order_relaxed);
    const int m = std::popcount(feature.implied.load(std::memory_order_relaxed));
    return m > 1 && n >= kFewest && (n >= kMostCounted || pays(n, m));
}

void ImpliedFeatures::count(std::int64_t t, Marks& marks) {
    const auto mark = static_cast<std::int32_t>(t + 1);
    each(t, [&](std::int32_t f) {
        Known& feature = known_[f];
        if (marks[f] == mark) feature.count.fetch_or(kTwice, std::memory_order_relaxed);
        marks[f] = mark;
        if (feature.count.load(std::memory_order_relaxed) < kMostCounted)
            feature.count.fetch_add(1, std::memory_order_relaxed);
        lower(feature.first, mark - 1);
    });
}

// All features of the first position, as far as there are bits for them; nothing for features that are too
// rare, or that a position has twice.
void ImpliedFeatures::start(Known& feature) const {
    const std::int32_t count = feature.count.load(std::memory_order_relaxed);
    if (count == 0) return;
    const std::int64_t n = n_features(feature.first.load(std::memory_order_relaxed));
    const std::uint64_t all = n < kMostLookedAt ? (std::uint64_t(1) << n) - 1 : ~std::uint64_t(0);
    feature.implied.store(count < kFewest || count >= kTwice ? 0 : all, std::memory_order_relaxed);
}

// Leaves each feature of the position those that it has implied so far and that are active here too, once.
void ImpliedFeatures::narrow(std::int64_t t, Marks& marks) {
    const auto mark = static_cast<std::int32_t>(t + 1);
    each(t, [&](std::int32_t f) {
        if (known_[f].count.load(std::memory_order_relaxed) < kTwice) marks[f] = mark;
    });
    each(t, [&](std::int32_t f) {
        Known& feature = known_[f];
        const std::uint64_t implied = feature.implied.load(std::memory_order_relaxed);
        if (std::popcount(implied) < 2) return;
        const std::int64_t first = feature.first.load(std::memory_order_relaxed);
        std::uint64_t both = 0;
        for (std::uint64_t left = implied; left; left &= left - 1) {
            const int k = __builtin_ctzll(left);
            both |= std::uint64_t(marks[this->feature(first, k)] == mark) << k;
        }
        if (both != implied) feature.implied.fetch_and(both, std::memory_order_relaxed);
    });
}

void ImpliedFeatures::add_sets(std::int64_t t, Marks& marks, std::vector<Set>& sets) const {
    const auto mark = static_cast<std::int32_t>(t + 1);
    std::array<std::uint64_t, kMostLookedAt> order;  // anchors: those that imply most first, then by number
    std::size_t n = 0;
    each(t, [&](std::int32_t f) {
        if (n == order.size() || !anchors_[f]) return;
        const int n_implied = std::popcount(known_[f].implied.load(std::memory_order_relaxed));
        order[n++] =
            static_cast<std::uint64_t>(kMostLookedAt - n_implied) << 32 | static_cast<std::uint32_t>(f);
    });
    std::sort(order.begin(), order.begin() + n);
    for (std::size_t i = 0; i < n; ++i) {
        const auto anchor = static_cast<std::int32_t>(order[i] & UINT32_MAX);
        if (marks[anchor] == mark) continue;
        Set set{anchor, 0};
        const std::int64_t first = known_[anchor].first.load(std::memory_order_relaxed);
        for (std::uint64_t left = known_[anchor].implied.load(std::memory_order_relaxed); left;
             left &= left - 1) {
            const int k = __builtin_ctzll(left);
            if (marks[feature(first, k)] != mark) set.members |= std::uint64_t(1) << k;
        }
        if (std::popcount(set.members) < 2) continue;
        each(set, [&](std::int32_t f) { marks[f] = mark; });
        sets.push_back(set);
    }
}

}  // namespace crfkit
