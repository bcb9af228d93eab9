// Φ w for lattices: the scores of nodes and arcs at given weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/buffer.hpp"
#include "data/layout.hpp"
#include "data/position_scores.hpp"
#include "lattice/data.hpp"
#include "lattice/lattice.hpp"

namespace crfkit {

// Real: the precision in which the weights of nodes are read (half the memory to wait for); sums are double.
template <class Real>
class LatticeScorer {
  public:
    LatticeScorer(const Layout& layout, const Design& design, const LatticeData& data)
        : layout_(layout), design_(design), data_(data) {}

    // Weights, or a direction of weights; w [D] must outlive the questions that follow. `tables` are those of
    // the same weights.
    void set(const double* w, const ArcTables& tables) {
        tables_ = &tables;
        if constexpr (std::is_same_v<Real, double>) {
            weights_ = w;
        } else {
            const auto n_pairs = static_cast<std::int64_t>(layout_.pair_labels.size());
            copy_.resize(n_pairs);
            for (std::int64_t p = 0; p < n_pairs; ++p) copy_[p] = static_cast<Real>(w[p]);
            weights_ = copy_.data();
        }
    }

    // The scores of the nodes of sequence n, start and end folded in.
    void score(std::int64_t n, std::vector<double>& scores) const {
        score_features(n, scores);
        const std::int64_t first_position = design_.sequence_ptr[n],
                           last_position = design_.sequence_ptr[n + 1];
        if (last_position == first_position) return;
        const auto& [position_ptr, labels] = data_.candidates;
        const std::int64_t first = position_ptr[first_position], last = position_ptr[last_position];
        for (std::int64_t node = first; node < position_ptr[first_position + 1]; ++node)
            scores[node - first] += tables_->start[labels[node]];
        for (std::int64_t node = position_ptr[last_position - 1]; node < last; ++node)
            scores[node - first] += tables_->end[labels[node]];
    }
    // The same without start and end.
    void score_features(std::int64_t n, std::vector<double>& scores) const {
        const std::int64_t first_position = design_.sequence_ptr[n],
                           last_position = design_.sequence_ptr[n + 1];
        const auto& position_ptr = data_.candidates.position_ptr;
        const std::int64_t first = position_ptr[first_position], last = position_ptr[last_position];
        scores.resize(static_cast<std::size_t>(last - first));
        if (!layout_.facets.empty())
            score_by_facet(first_position, last_position, scores);
        else if (data_.weights.ptr.size() > 0)
            score_nodes(first, last, scores);
        else
            score_positions(first_position, last_position, scores);
    }

    const ArcScores& arcs() const { return tables_->arcs; }

  private:
    void score_nodes(std::int64_t first, std::int64_t last, std::vector<double>& scores) const {
        const ActiveIds& active = data_.weights;
        for (std::int64_t node = first; node < last; ++node) {
            double sum = 0;
            if (active.values.size() > 0)
                for (std::int64_t i = active.ptr[node]; i < active.ptr[node + 1]; ++i)
                    sum += active.values[i] * weights_[active.ids[i]];
            else
                for (std::int64_t i = active.ptr[node]; i < active.ptr[node + 1]; ++i)
                    sum += weights_[active.ids[i]];
            scores[node - first] = sum;
        }
    }
    // The same sums without lists of weights.
    void score_positions(std::int64_t first_position, std::int64_t last_position,
                         std::vector<double>& scores) const {
        const ActiveIds& features = design_.features;
        const auto& [position_ptr, labels] = data_.candidates;
        std::fill(scores.begin(), scores.end(), 0.0);
        for (std::int64_t t = first_position; t < last_position; ++t) {
            const std::int64_t node = position_ptr[t], n = position_ptr[t + 1] - node;
            double* const of_position = scores.data() + node - position_ptr[first_position];
            for (std::int64_t i = features.ptr[t]; i < features.ptr[t + 1]; ++i) {
                const double value = features.values.size() > 0 ? features.values[i] : 1.0;
                each_weight(layout_, features.ids[i], labels.data() + node, n,
                            [&](std::int64_t k, std::int64_t p) { of_position[k] += value * weights_[p]; });
            }
        }
    }
    // A position's features score facets, and the facets of its candidates add up.
    void score_by_facet(std::int64_t first_position, std::int64_t last_position,
                        std::vector<double>& scores) const {
        const Facets& facets = layout_.facets;
        const std::int32_t shift = layout_.n_labels + 1;
        std::vector<double> by_facet;  // [facets]
        std::size_t node = 0;
        for (std::int64_t t = first_position; t < last_position; ++t) {
            by_facet.assign(static_cast<std::size_t>(facets.n), 0.0);
            add_position_scores(layout_, design_.features, t, weights_, shift, by_facet.data());
            for (std::int64_t k = data_.candidates.position_ptr[t]; k < data_.candidates.position_ptr[t + 1];
                 ++k) {
                const std::int32_t b = data_.candidates.labels[k];
                double sum = 0;
                for (std::int64_t i = facets.ptr[b]; i < facets.ptr[b + 1]; ++i)
                    sum += by_facet[facets.ids[i] - shift];
                scores[node++] = sum;
            }
        }
    }

    const Layout& layout_;
    const Design& design_;
    const LatticeData& data_;
    const ArcTables* tables_ = nullptr;
    const Real* weights_ = nullptr;  // [P]
    Buffer<Real> copy_;
};

}  // namespace crfkit
