#include "data/design.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "base/lists.hpp"
#include "base/threads.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kPositionsPerTask = 4096;
constexpr double kFewArcs = 0.3;  // share of all arcs; up to here lists of arcs are quicker than tables
constexpr std::int32_t kFewLabels = 64;  // up to here whole rows of labels are quicker than lattices

template <class Number>
void fill(Buffer<Number>& to, std::span<const Number> from, int n_threads) {
    constexpr std::int64_t piece = std::int64_t(1) << 16;
    const auto n = static_cast<std::int64_t>(from.size());
    to.resize(n);
    parallel_for((n + piece - 1) / piece, n_threads, [&](std::int64_t i, int) {
        std::copy(from.begin() + i * piece, from.begin() + std::min(n, (i + 1) * piece),
                  to.begin() + i * piece);
    });
}

void check(const FeatureList& list, std::int64_t n_positions, std::int64_t n_features,
           const std::string& name) {
    check_pointers(list.position_ptr, n_positions, list.ids.size(), name + ": position_ptr");
    check_range(list.ids, 0, n_features, name + ": ids");
    if (!list.values.empty() && list.values.size() != list.ids.size())
        throw std::invalid_argument(name + ": values and ids must have the same length");
}

}  // namespace

Design::Design(std::shared_ptr<const Layout> model, std::span<const std::int64_t> sequences,
               const FeatureList& states, const FeatureList& arc_features,
               std::vector<std::span<const double>> blocks, AllowedLabels allowed_labels, Purpose purpose,
               int n_threads)
    : sequence_ptr(sequences.begin(), sequences.end()),
      allowed(std::move(allowed_labels)),
      layout_(std::move(model)) {
    const Layout& layout = *layout_;
    check_pointers(sequence_ptr, sequence_ptr.empty() ? 0 : sequence_ptr.back(), "sequence_ptr");
    if (n_positions() > INT32_MAX)
        throw std::invalid_argument("more than 2,147,483,647 positions in one data set");
    check(states, n_positions(), layout.n_features(), "state features");
    if (!allowed.empty())
        check_label_lists(allowed.ptr, allowed.labels, n_positions(), layout.n_labels, "allowed");
    const bool with_arc_features = !arc_features.position_ptr.empty() && layout.n_arc_features() > 0;
    const bool plain = !with_arc_features && blocks.empty();
    const bool many = layout.n_labels > kFewLabels;
    as_lattices =
        purpose != Purpose::patterns && (!layout.facets.empty() || (plain && many && !allowed.empty()));
    as_batches = plain && purpose != Purpose::patterns && !as_lattices && many && layout.bigrams &&
                 layout.bigrams->n_arcs() < kFewArcs * layout.n_labels * layout.n_labels;
    if (as_lattices || as_batches || purpose == Purpose::questions) {
        fill(features.ptr, states.position_ptr, n_threads);
        fill(features.ids, states.ids, n_threads);
        fill(features.values, states.values, n_threads);
    } else {
        split_states(layout, states, n_threads);
    }

    if (with_arc_features) {
        check(arc_features, n_positions(), layout.n_arc_features(), "arc features");
        fill(arcs.ptr, arc_features.position_ptr, n_threads);
        fill(arcs.ids, arc_features.ids, n_threads);
        fill(arcs.values, arc_features.values, n_threads);
        for (std::size_t n = 0; n + 1 < sequence_ptr.size(); ++n) {
            const std::int64_t first = sequence_ptr[n];
            if (first < sequence_ptr[n + 1] && arcs.ptr[first + 1] > arcs.ptr[first])
                throw std::invalid_argument(
                    "sequence " + std::to_string(n) +
                    ": an arc feature at its first position, into which no arc leads");
        }
    }

    if (blocks.size() != layout.dense_columns.size())
        throw std::invalid_argument("the data has " + std::to_string(blocks.size()) +
                                    " dense blocks, the model " +
                                    std::to_string(layout.dense_columns.size()));
    for (std::size_t k = 0; k < blocks.size(); ++k) {
        if (static_cast<std::int64_t>(blocks[k].size()) != n_positions() * layout.dense_columns[k])
            throw std::invalid_argument("dense block " + std::to_string(k) + " has the wrong size");
        dense.emplace_back(static_cast<std::int64_t>(blocks[k].size()));
        std::copy(blocks[k].begin(), blocks[k].end(), dense.back().begin());
    }
}

void Design::check_layout(const Layout& layout) const {
    if (layout_.get() != &layout && !(*layout_ == layout))
        throw std::invalid_argument(
            "the design was compiled against another layout of weights than the one it is used with");
}

Design Design::in_rows(int n_threads) const {
    const auto view = []<class Number>(const Buffer<Number>& of) {
        return std::span<const Number>(of.data(), static_cast<std::size_t>(of.size()));
    };
    return Design(layout_, sequence_ptr, {view(features.ptr), view(features.ids), view(features.values)}, {},
                  {}, allowed, Purpose::patterns, n_threads);
}

void Design::move_to(ScratchMemory& memory) {
    for (ActiveIds* lists : {&features, &arcs}) lists->move_to(memory);
    split.move_to(memory);
    for (Buffer<double>& block : dense) memory.take(block);
}

void Design::split_states(const Layout& layout, const FeatureList& states, int n_threads) {
    const std::int64_t n = n_positions(), n_tasks = (n + kPositionsPerTask - 1) / kPositionsPerTask;
    auto& [rows, entries, entry_labels] = split;
    rows.ptr.assign(n + 1, 0);
    entries.ptr.assign(n + 1, 0);
    const auto range = [&](std::int64_t task) {
        return std::pair(task * kPositionsPerTask, std::min(n, (task + 1) * kPositionsPerTask));
    };
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int) {
        const auto [begin, end] = range(task);
        for (std::int64_t t = begin; t < end; ++t)
            for (std::int64_t i = states.position_ptr[t]; i < states.position_ptr[t + 1]; ++i) {
                const std::int32_t f = states.ids[i];
                if (layout.row_of[f] >= 0)
                    ++rows.ptr[t + 1];
                else
                    entries.ptr[t + 1] += layout.pair_ptr[f + 1] - layout.pair_ptr[f];
            }
    });
    for (std::int64_t t = 0; t < n; ++t) {
        rows.ptr[t + 1] += rows.ptr[t];
        entries.ptr[t + 1] += entries.ptr[t];
    }
    const bool valued = !states.values.empty();
    rows.ids.resize(rows.ptr[n]);
    entries.ids.resize(entries.ptr[n]);
    entry_labels.resize(entries.ptr[n]);
    if (valued) {
        rows.values.resize(rows.ptr[n]);
        entries.values.resize(entries.ptr[n]);
    }
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int) {
        const auto [begin, end] = range(task);
        for (std::int64_t t = begin; t < end; ++t) {
            std::int64_t row = rows.ptr[t], entry = entries.ptr[t];
            for (std::int64_t i = states.position_ptr[t]; i < states.position_ptr[t + 1]; ++i) {
                const std::int32_t f = states.ids[i];
                if (layout.row_of[f] >= 0) {
                    if (valued) rows.values[row] = states.values[i];
                    rows.ids[row++] = layout.row_of[f];
                    continue;
                }
                for (std::int64_t p = layout.pair_ptr[f]; p < layout.pair_ptr[f + 1]; ++p) {
                    if (valued) entries.values[entry] = states.values[i];
                    entry_labels[entry] = layout.pair_labels[p];
                    entries.ids[entry++] = static_cast<std::int32_t>(p);
                }
            }
        }
    });
}

// A counting sort. Ids come out ascending, so that what is added up for them is written from front to back.
// scratch[id] is 0 on entry and on return; meanwhile it counts, then points to where the next position of the
// id goes.
Inverted invert(const ActiveIds& active, std::int64_t first, std::int64_t last,
                std::vector<std::int32_t>& scratch) {
    const std::int64_t begin = active.ptr[first], end = active.ptr[last];
    if (end - begin > INT32_MAX)
        throw std::invalid_argument("more than 2,147,483,647 features in one block of positions");
    Inverted out;
    std::int64_t n = 0;
    for (std::int64_t i = begin; i < end; ++i) n += scratch[active.ids[i]]++ == 0;
    out.ids.resize(n);
    out.ptr.resize(n + 1);
    out.ptr[0] = n = 0;
    for (std::size_t id = 0; id < scratch.size(); ++id) {
        if (scratch[id] == 0) continue;
        out.ids[n] = static_cast<std::int32_t>(id);
        out.ptr[n + 1] = out.ptr[n] + scratch[id];
        scratch[id] = static_cast<std::int32_t>(out.ptr[n++]);
    }
    const bool valued = active.values.size() > 0;
    out.positions.resize(end - begin);
    if (valued) out.values.resize(end - begin);
    for (std::int64_t t = first; t < last; ++t)
        for (std::int64_t i = active.ptr[t]; i < active.ptr[t + 1]; ++i) {
            const std::int32_t place = scratch[active.ids[i]]++;
            out.positions[place] = static_cast<std::int32_t>(t - first);
            if (valued) out.values[place] = active.values[i];
        }
    std::fill(scratch.begin(), scratch.end(), 0);
    return out;
}

Inverted sort_by_length(const Inverted& lists, const std::vector<std::int64_t>& ranges) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(lists.n()));
    std::iota(order.begin(), order.end(), 0);
    const auto length = [&](std::int64_t list) { return lists.ptr[list + 1] - lists.ptr[list]; };
    for (std::size_t r = 0; r + 1 < ranges.size(); ++r)
        std::stable_sort(order.begin() + ranges[r], order.begin() + ranges[r + 1],
                         [&](std::int64_t a, std::int64_t b) { return length(a) < length(b); });
    Inverted out;
    out.ids.resize(lists.ids.size());
    out.ptr.resize(lists.ptr.size());
    out.positions.resize(lists.positions.size());
    out.values.resize(lists.values.size());
    out.ptr[0] = 0;
    for (std::int64_t k = 0; k < lists.n(); ++k) {
        const std::int64_t list = order[k], first = lists.ptr[list], n = length(list);
        out.ids[k] = lists.ids[list];
        out.ptr[k + 1] = out.ptr[k] + n;
        std::copy_n(lists.positions.data() + first, n, out.positions.data() + out.ptr[k]);
        if (lists.values.size() > 0)
            std::copy_n(lists.values.data() + first, n, out.values.data() + out.ptr[k]);
    }
    return out;
}

}  // namespace crfkit
