#include "chain/mistakes.hpp"

#include <cmath>
#include <stdexcept>

#include "base/buffer.hpp"
#include "base/interruption.hpp"
#include "base/threads.hpp"
#include "chain/viterbi.hpp"
#include "chain/workspace.hpp"
#include "data/scorer.hpp"
#include "data/weight_tables.hpp"

namespace crfkit {
namespace {

// Real: the precision of the scores.
template <class Real>
class RowMistakes : public ChainMistakes {
  public:
    RowMistakes(const Layout& layout, const Design& design, const Annotation& gold, const ArcModel& arcs,
                const double* w)
        : ChainMistakes(layout, design, gold, arcs, w),
          tables_(layout, WeightTables<Real>::kNever),
          scorer_(layout, design, tables_) {
        const auto n_rows = static_cast<std::int64_t>(layout.row_features.size());
        pairs_.resize(n_rows * tables_.stride);
        fill_all(pairs_.data(), pairs_.size(), std::int32_t(-1), 1);
        Pace pace;
        for (std::int64_t row = 0; row < n_rows; ++row) {
            const std::int32_t f = layout.row_features[row];
            pace.work(16 * (layout.pair_ptr[f + 1] - layout.pair_ptr[f]));
            for (std::int64_t p = layout.pair_ptr[f]; p < layout.pair_ptr[f + 1]; ++p)
                pairs_[row * tables_.stride + layout.pair_labels[p]] = static_cast<std::int32_t>(p);
        }
    }

    void read_weights() override { tables_.set(w_, 1); }

    // In random order nothing but this lets the memory know what comes.
    void expect(std::int64_t n) const override {
        constexpr std::int64_t line = 64 / sizeof(std::int32_t);
        const auto fetch = [](const Buffer<std::int32_t>& ids, std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; i += line) __builtin_prefetch(ids.data() + i);
        };
        const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
        fetch(design_.split.rows.ids, design_.split.rows.ptr[first], design_.split.rows.ptr[last]);
        fetch(design_.split.entries.ids, design_.split.entries.ptr[first], design_.split.entries.ptr[last]);
        fetch(design_.split.entry_labels, design_.split.entries.ptr[first], design_.split.entries.ptr[last]);
    }

    void read_changes(const Difference& difference) override {
        for (const Cell& cell : cells_) *cell.place = static_cast<Real>(w_[cell.weight]);
        const std::int64_t arcs_begin = layout_.arcs_begin(), triples_begin = layout_.triples_begin();
        difference.each([&](std::int64_t weight, double) {
            if (weight >= triples_begin)
                tables_.triples[weight - triples_begin] = static_cast<Real>(w_[weight]);
            else if (weight >= arcs_begin)
                read_arc(layout_.arc_before[weight - arcs_begin], layout_.arc_after[weight - arcs_begin]);
        });
    }

  private:
    void predict(std::int64_t n) override {
        const std::int64_t first = design_.sequence_ptr[n], n_positions = design_.sequence_ptr[n + 1] - first;
        cells_.clear();
        work_.scores.resize(n_positions * tables_.stride);
        work_.forward.resize(n_positions * tables_.stride);
        scorer_.score(n, work_.scores.data());
        close_labels(design_.allowed, first, n_positions, layout_.n_labels, tables_.stride,
                     work_.scores.data());
        if (design_.arcs.ptr.size() > 0) {
            prepare_own_arcs<Real>(scorer_, nullptr, layout_.n_labels, first, n_positions, work_);
            own_ = work_.arc_scores(n_positions, tables_.arcs.size());
        }
        label(n_positions, predicted_);
    }

    void correct(std::int64_t n) override {
        const std::int64_t first = design_.sequence_ptr[n], n_positions = design_.sequence_ptr[n + 1] - first;
        for (std::int64_t t = 0; t < n_positions; ++t)
            gold_.forbidden(first + t, layout_.n_labels, [&](std::int32_t b) {
                work_.scores[t * tables_.stride + b] = WeightTables<Real>::kNever;
            });
        label(n_positions, right_);
    }

    void add_position(std::int64_t position, std::int32_t label, double sign,
                      Difference& difference) override {
        const std::int64_t S = tables_.stride, L = layout_.n_labels;
        const auto add = [&](std::int64_t weight, Real* place, double count) {
            difference.add(weight, count);
            cells_.push_back({weight, place});
        };
        const ActiveIds &rows = design_.split.rows, &entries = design_.split.entries;
        for (std::int64_t i = rows.ptr[position]; i < rows.ptr[position + 1]; ++i) {
            const std::int64_t cell = rows.ids[i] * S + label;
            if (pairs_[cell] >= 0)
                add(pairs_[cell], tables_.rows.data() + cell,
                    rows.values.size() > 0 ? sign * rows.values[i] : sign);
        }
        for (std::int64_t i = entries.ptr[position]; i < entries.ptr[position + 1]; ++i)
            if (design_.split.entry_labels[i] == label)
                add(entries.ids[i], tables_.weights.data() + entries.ids[i],
                    entries.values.size() > 0 ? sign * entries.values[i] : sign);
        for (std::size_t k = 0; k < design_.dense.size(); ++k) {
            const std::int64_t n_columns = layout_.dense_columns[k], begin = layout_.dense_begin(k);
            for (std::int64_t c = 0; c < n_columns; ++c)
                if (const double value = design_.dense[k][position * n_columns + c]; value != 0)
                    add(begin + c * L + label, tables_.dense[k].data() + c * S + label, sign * value);
        }
    }

    void read_arc(std::int32_t before, std::int32_t after) {
        const std::int32_t L = layout_.n_labels;
        const auto sum = [&](std::span<const std::int64_t> weights) {
            return static_cast<Real>(sum_of(weights, w_));
        };
        if (before == L)
            tables_.start[after] = sum(arcs_.of_start(after));
        else if (after == L)
            tables_.end[before] = sum(arcs_.of_end(before));
        else
            tables_.arcs[static_cast<std::int64_t>(before) * tables_.stride + after] =
                sum(arcs_.of_arc(arcs_.bigrams.find(before, after)));
    }

    void label(std::int64_t n_positions, std::vector<std::int32_t>& labels) {
        const double score = best_labels<Real>(tables_, own_, n_positions, layout_.n_labels,
                                               work_.scores.data(), work_.forward.data(), labels.data());
        if (!std::isfinite(score))  // that some label sequence is possible was seen to beforehand
            throw std::overflow_error(
                "the scores of a sequence left the range of numbers, expected smaller values of features");
    }

    // A weight, and where the tables have it.
    struct Cell {
        std::int64_t weight;
        Real* place;
    };
    WeightTables<Real> tables_;
    Scorer<Real> scorer_;
    Buffer<std::int32_t> pairs_;  // [n_rows, S] the pair of each cell of the rows, −1: none
    Workspace<Real> work_;
    std::vector<const Real*> own_;  // [T] arc scores into each position that has its own; empty: none has
    std::vector<Cell> cells_;       // of the positions of the mistake found last
};

}  // namespace

std::unique_ptr<Mistakes> row_mistakes(const Layout& layout, const Design& design, const Annotation& gold,
                                       const ArcModel& arcs, const double* w, bool single_precision) {
    if (single_precision) return std::make_unique<RowMistakes<float>>(layout, design, gold, arcs, w);
    return std::make_unique<RowMistakes<double>>(layout, design, gold, arcs, w);
}

}  // namespace crfkit
