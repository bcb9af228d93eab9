#include "data/feature_groups.hpp"

#include <algorithm>
#include <bit>
#include <ranges>
#include <vector>

#include "base/threads.hpp"
#include "data/implied_features.hpp"
#include "kernels/kernels.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kPositionsPerTask = 4096, kTasksAtOnce = 64, kGroupsPerTask = 256,
                       kMembershipsPerTask = 8192;
using Set = ImpliedFeatures::Set;

std::int64_t n_tasks(const ImpliedFeatures& implied) {
    return (implied.n_positions() + kPositionsPerTask - 1) / kPositionsPerTask;
}

auto positions(const ImpliedFeatures& implied, std::int64_t task) {
    return std::views::iota(task * kPositionsPerTask,
                            std::min(implied.n_positions(), (task + 1) * kPositionsPerTask));
}

// How many rows and pairs there may be: what is remembered of each must not take more memory than the data.
std::int64_t most_numbers(std::int64_t n_active) {
    return std::min<std::int64_t>(INT32_MAX / 2, 4 * n_active + (std::int64_t(1) << 20));
}

// The different sets of all positions: how often each occurs, and which of them are groups.
class SetCounts {
  public:
    explicit SetCounts(std::size_t n_features) : last_of_(n_features, -1) {}

    // Returns its number.
    std::int32_t add(const Set& set) {
        std::int32_t i = find(set);
        if (i < 0) {
            i = static_cast<std::int32_t>(counted_.size());
            counted_.push_back({set, last_of_[set.anchor]});
            last_of_[set.anchor] = i;
        }
        ++counted_[i].n;
        return i;
    }

    // Numbers as groups the sets for which a row of their own pays; the most frequent first, so that
    // their rows share the cache; these sets in that order.
    std::vector<Set> choose(const ImpliedFeatures& implied) {
        std::vector<Counted*> chosen;
        for (Counted& counted : counted_)
            if (implied.pays(counted.n, std::popcount(counted.set.members))) chosen.push_back(&counted);
        std::stable_sort(chosen.begin(), chosen.end(),
                         [](const Counted* a, const Counted* b) { return a->n > b->n; });
        std::vector<Set> groups;
        for (Counted* counted : chosen) {
            counted->group = static_cast<std::int32_t>(groups.size());
            groups.push_back(counted->set);
        }
        return groups;
    }
    std::int32_t group(std::int32_t i) const { return counted_[i].group; }  // −1: none

  private:
    struct Counted {
        Set set;
        std::int32_t before;  // another set of the same anchor, or −1
        std::int32_t n = 0, group = -1;
    };
    std::int32_t find(const Set& set) const {
        std::int32_t i = last_of_[set.anchor];
        while (i >= 0 && counted_[i].set.members != set.members) i = counted_[i].before;
        return i;
    }

    std::vector<std::int32_t> last_of_;  // [features] the newest set with this anchor, or −1
    std::vector<Counted> counted_;
};

struct PositionSets {
    SetCounts counts;
    std::vector<std::int64_t> ptr;  // [T + 1]
    std::vector<std::int32_t> ids;  // numbers in `counts`
};

PositionSets find_sets(const ImpliedFeatures& implied, int n_threads) {
    struct Found {
        std::vector<Set> sets;
        std::vector<std::int64_t> ends;  // of each position
    };
    PositionSets out{SetCounts(implied.n_numbers()), {0}, {}};
    std::vector<ImpliedFeatures::Marks> all_marks(static_cast<std::size_t>(std::max(1, n_threads)));
    for (std::int64_t first = 0; first < n_tasks(implied); first += kTasksAtOnce) {
        std::vector<Found> found(static_cast<std::size_t>(std::min(kTasksAtOnce, n_tasks(implied) - first)));
        parallel_for(std::ssize(found), n_threads, [&](std::int64_t i, int worker) {
            ImpliedFeatures::Marks& marks = all_marks[static_cast<std::size_t>(worker)];
            if (marks.empty()) marks = implied.marks();
            auto& [sets, ends] = found[i];
            for (const std::int64_t t : positions(implied, first + i)) {
                implied.add_sets(t, marks, sets);
                ends.push_back(std::ssize(sets));
            }
        });
        for (const auto& [sets, ends] : found) {
            const std::int64_t before = out.ptr.back();
            for (const Set& set : sets) out.ids.push_back(out.counts.add(set));
            for (const std::int64_t end : ends) out.ptr.push_back(before + end);
        }
    }
    return out;
}

template <class Number>
void copy_to(Buffer<Number>& to, const std::vector<Number>& from) {
    to.resize(std::ssize(from));
    std::copy(from.begin(), from.end(), to.begin());
}

void label_entries(const Layout& layout, SplitFeatures& features) {
    features.entry_labels.resize(features.entries.ids.size());
    for (std::int64_t i = 0; i < features.entries.ids.size(); ++i)
        features.entry_labels[i] = layout.pair_labels[features.entries.ids[i]];
}

// The rows and single weights of each group.
SplitFeatures list_members(const Layout& layout, const ImpliedFeatures& implied,
                           const std::vector<Set>& groups) {
    std::vector<std::int64_t> row_ptr{0}, entry_ptr{0};
    std::vector<std::int32_t> rows, entries;
    for (const Set& group : groups) {
        implied.each(group, [&](std::int32_t f) {
            if (f < implied.n_rows())
                rows.push_back(f);
            else
                entries.push_back(static_cast<std::int32_t>(f - implied.n_rows()));
        });
        row_ptr.push_back(std::ssize(rows));
        entry_ptr.push_back(std::ssize(entries));
    }
    SplitFeatures members;
    copy_to(members.rows.ptr, row_ptr);
    copy_to(members.rows.ids, rows);
    copy_to(members.entries.ptr, entry_ptr);
    copy_to(members.entries.ids, entries);
    label_entries(layout, members);
    return members;
}

// Lists cut[k]..cut[k+1]−1 are one task: lists of frequent features are long, and most of these come first.
std::vector<std::int64_t> cut_lists(const Inverted& lists) {
    std::vector<std::int64_t> cuts{0};
    for (std::int64_t k = 1; k <= lists.n(); ++k)
        if (k == lists.n() || lists.ptr[k + 1] - lists.ptr[cuts.back()] > kMembershipsPerTask)
            cuts.push_back(k);
    return cuts;
}

std::int64_t length(const ActiveIds& lists, std::int64_t i) { return lists.ptr[i + 1] - lists.ptr[i]; }

// What is active at each position, with the rows of groups in place of their members.
SplitFeatures replace_members(const Layout& layout, const SplitFeatures& all, const ImpliedFeatures& implied,
                              const PositionSets& sets, const SplitFeatures& members, int n_threads) {
    const std::int64_t n = implied.n_positions();
    const auto each_group = [&](std::int64_t t, const auto& function) {
        for (std::int64_t i = sets.ptr[t]; i < sets.ptr[t + 1]; ++i)
            if (const std::int32_t group = sets.counts.group(sets.ids[i]); group >= 0) function(group);
    };
    SplitFeatures out;
    out.rows.ptr.assign(n + 1, 0);
    out.entries.ptr.assign(n + 1, 0);
    for (std::int64_t t = 0; t < n; ++t) {
        std::int64_t rows = length(all.rows, t), entries = length(all.entries, t);
        each_group(t, [&](std::int32_t group) {
            rows -= length(members.rows, group) - 1;
            entries -= length(members.entries, group);
        });
        out.rows.ptr[t + 1] = out.rows.ptr[t] + rows;
        out.entries.ptr[t + 1] = out.entries.ptr[t] + entries;
    }
    out.rows.ids.resize(out.rows.ptr[n]);
    out.entries.ids.resize(out.entries.ptr[n]);
    const auto n_rows = static_cast<std::int32_t>(implied.n_rows());
    std::vector<ImpliedFeatures::Marks> all_marks(static_cast<std::size_t>(std::max(1, n_threads)));
    parallel_for(n_tasks(implied), n_threads, [&](std::int64_t task, int worker) {
        ImpliedFeatures::Marks& in_groups = all_marks[static_cast<std::size_t>(worker)];
        if (in_groups.empty()) in_groups = implied.marks();
        for (const std::int64_t t : positions(implied, task)) {
            const auto mark = static_cast<std::int32_t>(t + 1);
            std::int32_t* row = out.rows.ids.data() + out.rows.ptr[t];
            std::int32_t* entry = out.entries.ids.data() + out.entries.ptr[t];
            each_group(t, [&](std::int32_t group) {
                for (std::int64_t i = members.rows.ptr[group]; i < members.rows.ptr[group + 1]; ++i)
                    in_groups[members.rows.ids[i]] = mark;
                for (std::int64_t i = members.entries.ptr[group]; i < members.entries.ptr[group + 1]; ++i)
                    in_groups[n_rows + members.entries.ids[i]] = mark;
                *row++ = n_rows + group;
            });
            implied.each(t, [&](std::int32_t f) {
                if (in_groups[f] == mark) return;
                if (f < n_rows)
                    *row++ = f;
                else
                    *entry++ = f - n_rows;
            });
        }
    });
    label_entries(layout, out);
    return out;
}

}  // namespace

FeatureGroups::FeatureGroups(const Layout& layout, const Design& design, int n_threads)
    : layout_(layout),
      design_(design),
      n_feature_rows_(static_cast<std::int64_t>(layout.row_features.size())) {
    const bool valued = design.split.rows.values.size() + design.split.entries.values.size() > 0;
    const auto n_pairs = static_cast<std::int64_t>(layout.pair_labels.size());
    const std::int64_t n_active = design.split.rows.ids.size() + design.split.entries.ids.size();
    if (!design.is_split() || valued || n_feature_rows_ + n_pairs > most_numbers(n_active)) return;
    const ImpliedFeatures implied(design.split, n_feature_rows_, n_pairs, n_threads);
    PositionSets sets = find_sets(implied, n_threads);
    const std::vector<Set> groups = sets.counts.choose(implied);
    if (groups.empty()) return;
    members_ = list_members(layout, implied, groups);
    features_ = replace_members(layout, design.split, implied, sets, members_, n_threads);
    std::vector<std::int32_t> scratch(static_cast<std::size_t>(std::max(n_feature_rows_, n_pairs)), 0);
    rows_ = invert(members_.rows, 0, n(), scratch);
    entries_ = invert(members_.entries, 0, n(), scratch);
    for (const std::int32_t pair : entries_.ids) entry_labels_.push_back(layout.pair_labels[pair]);
    row_cuts_ = cut_lists(rows_);
    entry_cuts_ = cut_lists(entries_);
}

template <class Real>
void FeatureGroups::add_up(const Real* weights, std::int32_t stride, Real* rows, int n_threads) const {
    const Kernels<Real>& kernels = kernels_for<Real>(layout_.n_labels);
    Buffer<Real> zeros;
    zeros.assign(stride, 0);
    parallel_for((n() + kGroupsPerTask - 1) / kGroupsPerTask, n_threads, [&](std::int64_t task, int) {
        const std::int64_t first = task * kGroupsPerTask;
        const PositionFeatures<Real> members{members_.rows.ptr.data() + first,
                                             members_.rows.ids.data(),
                                             nullptr,
                                             members_.entries.ptr.data() + first,
                                             members_.entries.ids.data(),
                                             members_.entry_labels.data(),
                                             nullptr,
                                             rows,
                                             weights};
        kernels.score_positions(members, std::min(kGroupsPerTask, n() - first), stride, zeros.data(),
                                rows + (n_feature_rows_ + first) * stride);
    });
}

void FeatureGroups::share_out(std::int32_t stride, double* sums, double* out, int n_threads) const {
    const Kernels<double>& kernels = kernels_for<double>(layout_.n_labels);
    const double* groups = sums + n_feature_rows_ * stride;
    const std::int64_t n_row_tasks = std::ssize(row_cuts_) - 1, n_entry_tasks = std::ssize(entry_cuts_) - 1;
    parallel_for(n_row_tasks + n_entry_tasks, n_threads, [&](std::int64_t task, int) {
        const bool of_rows = task < n_row_tasks;
        const Inverted& lists = of_rows ? rows_ : entries_;
        const std::int64_t* cut = of_rows ? row_cuts_.data() + task : entry_cuts_.data() + task - n_row_tasks;
        const std::int64_t first = cut[0], last = cut[1];
        const PositionLists<double> positions{lists.ptr.data(), lists.positions.data(), nullptr};
        if (of_rows)
            kernels.sum_rows(positions, first, last, lists.ids.data(), groups, stride, SumGrid(), sums);
        else
            kernels.sum_entries(positions, first, last, lists.ids.data(), entry_labels_.data(), groups,
                                stride, SumGrid(), out);
    });
}

void FeatureGroups::move_to(ScratchMemory& memory) {
    features_.move_to(memory);
    members_.move_to(memory);
    rows_.move_to(memory);
    entries_.move_to(memory);
}

template void FeatureGroups::add_up(const float*, std::int32_t, float*, int) const;
template void FeatureGroups::add_up(const double*, std::int32_t, double*, int) const;

}  // namespace crfkit
