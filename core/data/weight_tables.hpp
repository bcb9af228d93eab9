// A weight vector expanded for the kernels: rows of label weights, arcs, start and end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "data/feature_groups.hpp"
#include "data/layout.hpp"
#include "kernels/kernels.hpp"

namespace crfkit {

template <class Real>
class WeightTables {
  public:
    // How far apart arc scores may lie for scaled arithmetic to stay exact. Let r be this spread and m the
    // logarithm of the smallest normal number (−87 in single precision, −708 in double). Arcs change the odds
    // between two labels of a position by at most e^r on either side, and a position's forward message adds
    // up to at least e^−r before it is scaled. So a label whose message underflows has a probability below
    // e^(m + 2r), and no message exceeds e^2r.
    static constexpr double kSafeSpread = std::is_same_v<Real, float> ? 30 : 230;
    static constexpr Real kNever = -std::numeric_limits<Real>::infinity();

    // `pad`: what stands in the padding of score rows; kNever for scores, 0 for directions. With groups of
    // features, these have rows behind those of features.
    WeightTables(const Layout& layout, Real pad, const FeatureGroups* feature_groups = nullptr)
        : kernels(kernels_for<Real>(layout.n_labels)),
          stride(stride_for(kernels, layout.n_labels)),
          groups(feature_groups),
          layout_(layout),
          pad_(pad) {}

    // After `set`: fills in `features`, by which designs for questions are scored.
    void list_features() {
        features.resize(layout_.n_features());
        for (std::int64_t f = 0; f < layout_.n_features(); ++f) {
            const std::int64_t first = layout_.pair_ptr[f], n = layout_.pair_ptr[f + 1] - first;
            if (layout_.row_of[f] >= 0)
                features[f] = {0, layout_.row_of[f], -1};
            else if (n == 1)
                features[f] = {weights[first], layout_.pair_labels[first], 1};
            else
                features[f] = {0, static_cast<std::int32_t>(first), static_cast<std::int32_t>(n)};
        }
    }

    const Kernels<Real>& kernels;
    const std::int32_t stride;              // S
    const FeatureGroups* const groups;      // null: none
    Buffer<Real> rows;                      // [n_rows, S] weights of the features that are scored as a whole
    Buffer<Real> weights;                   // [n_pairs]
    Buffer<FeatureWeights<Real>> features;  // [F], where they were asked for
    std::vector<Buffer<Real>> dense;        // [K, S] each
    Buffer<Real> base;                      // [S] 0, and `pad`
    Buffer<Real> start, end;                // [S] scores of the first and last label
    Buffer<Real> arcs;                      // [L, S] arc scores that hold at every position
    Buffer<Real> triples;                   // weights of the arc features
    double arc_maximum = 0,
           arc_spread = 0;  // maximum of the arc scores, and how far the minimum lies below it

    void set(const double* w, int n_threads) {
        expand_rows(w, n_threads);
        add_up_groups(n_threads);
        expand_dense(w);
        set_arcs(w + layout_.arcs_begin());
        expand_triples(w + layout_.triples_begin());
    }

    // Makes the rows of groups from those of features.
    void add_up_groups(int n_threads) {
        if (groups) groups->add_up(weights.data(), stride, rows.data(), n_threads);
    }

    // Takes over the tables of another of the same layout, which has none then. Groups may be others:
    // `add_up_groups` makes their rows.
    void take(WeightTables& other) {
        rows = std::exchange(other.rows, {});
        weights = std::exchange(other.weights, {});
        features = std::exchange(other.features, {});
        dense = std::exchange(other.dense, {});
        base = std::exchange(other.base, {});
        start = std::exchange(other.start, {});
        end = std::exchange(other.end, {});
        arcs = std::exchange(other.arcs, {});
        triples = std::exchange(other.triples, {});
        arc_maximum = other.arc_maximum;
        arc_spread = other.arc_spread;
        if (groups && rows.size() > 0) grow_rows(groups->n_rows() * stride);
    }

    // Arcs, start and end alone, from the weights of the arcs; for one who has those of the features
    // elsewhere.
    void set_arcs(const double* from) {
        const std::int32_t L = layout_.n_labels;
        base.assign(stride, 0);
        start.assign(stride, 0);
        end.assign(stride, 0);
        arcs.assign(static_cast<std::int64_t>(L) * stride, 0);
        for (std::int32_t b = L; b < stride; ++b) {
            base[b] = pad_;
            for (std::int32_t a = 0; a < L; ++a) arcs[static_cast<std::int64_t>(a) * stride + b] = pad_;
        }
        for (std::size_t i = 0; i < layout_.arc_before.size(); ++i) {
            const std::int64_t a = layout_.arc_before[i], b = layout_.arc_after[i];
            (a == L ? start[b] : b == L ? end[a] : arcs[a * stride + b]) += static_cast<Real>(from[i]);
        }
        if (pad_ == kNever && layout_.bigrams && !layout_.bigrams->soft) forbid_arcs(*layout_.bigrams);
        std::tie(arc_maximum, arc_spread) = range(arcs.data());
    }

    // Maximum and spread of a table of arc scores [L, S], pads and forbidden arcs left out.
    std::pair<double, double> range(const Real* table) const {
        double top = -std::numeric_limits<double>::infinity(), bottom = -top;
        for (std::int32_t a = 0; a < layout_.n_labels; ++a)
            for (std::int32_t b = 0; b < layout_.n_labels; ++b) {
                const double score = table[static_cast<std::int64_t>(a) * stride + b];
                if (score == kNever) continue;
                top = std::max(top, score);
                bottom = std::min(bottom, score);
            }
        return top < bottom ? std::pair(0.0, 0.0) : std::pair(top, top - bottom);
    }

  private:
    // Zero where a pair has no weight.
    void expand_rows(const double* w, int n_threads) {
        constexpr std::int64_t block = 8192, row_block = 256;  // so that many threads have work
        const auto n_rows = static_cast<std::int64_t>(layout_.row_features.size());
        const auto n_pairs = static_cast<std::int64_t>(layout_.pair_labels.size());
        if (rows.size() == 0) {  // gaps and pads stay 0 from then on
            Buffer<Real> zeros((groups ? groups->n_rows() : n_rows) * stride);
            fill_all(zeros.data(), zeros.size(), Real(0), n_threads);
            rows = std::move(zeros);
        }
        weights.resize(n_pairs);
        parallel_for((n_pairs + block - 1) / block, n_threads, [&](std::int64_t task, int) {
            for (std::int64_t p = task * block; p < std::min(n_pairs, (task + 1) * block); ++p)
                weights[p] = static_cast<Real>(w[p]);
        });
        parallel_for((n_rows + row_block - 1) / row_block, n_threads, [&](std::int64_t task, int) {
            for (std::int64_t r = task * row_block; r < std::min(n_rows, (task + 1) * row_block); ++r) {
                const std::int64_t f = layout_.row_features[r];
                for (std::int64_t p = layout_.pair_ptr[f]; p < layout_.pair_ptr[f + 1]; ++p)
                    rows[r * stride + layout_.pair_labels[p]] = static_cast<Real>(w[p]);
            }
        });
    }

    // Leaves the rows of features as they are.
    void grow_rows(std::int64_t size) {
        if (rows.size() >= size) return;
        Buffer<Real> larger(size);
        std::copy(rows.begin(), rows.end(), larger.begin());
        rows = std::move(larger);
    }

    void expand_dense(const double* w) {
        const std::int32_t L = layout_.n_labels;
        dense.resize(layout_.dense_columns.size());
        for (std::size_t k = 0; k < dense.size(); ++k) {
            const double* from = w + layout_.dense_begin(k);
            dense[k].assign(layout_.dense_columns[k] * stride, 0);
            for (std::int64_t c = 0; c < layout_.dense_columns[k]; ++c)
                for (std::int32_t b = 0; b < L; ++b)
                    dense[k][c * stride + b] = static_cast<Real>(from[c * L + b]);
        }
    }

    void expand_triples(const double* from) {
        triples.resize(static_cast<std::int64_t>(layout_.arc_triples.size()));
        for (std::int64_t i = 0; i < triples.size(); ++i) triples[i] = static_cast<Real>(from[i]);
    }

    void forbid_arcs(const Bigrams& bigrams) {
        for (std::int32_t a = 0; a < layout_.n_labels; ++a) {
            if (!bigrams.can_start[a]) start[a] = kNever;
            if (!bigrams.can_end[a]) end[a] = kNever;
            for (std::int32_t b = 0; b < layout_.n_labels; ++b)
                if (bigrams.find(a, b) < 0) arcs[static_cast<std::int64_t>(a) * stride + b] = kNever;
        }
    }

    const Layout& layout_;
    Real pad_;
};

}  // namespace crfkit
