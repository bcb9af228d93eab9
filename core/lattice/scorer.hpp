// Φ w for lattices: the scores of nodes and arcs at given weights.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/buffer.hpp"
#include "lattice/lattice.hpp"
#include "lattice/data.hpp"
#include "data/layout.hpp"
#include "data/position_scores.hpp"

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
        const std::int64_t first_site = design_.sequence_ptr[n], last_site = design_.sequence_ptr[n + 1];
        if (last_site == first_site) return;
        const auto& [site_ptr, labels] = data_.candidates;
        const std::int64_t first = site_ptr[first_site], last = site_ptr[last_site];
        for (std::int64_t node = first; node < site_ptr[first_site + 1]; ++node)
            scores[node - first] += tables_->start[labels[node]];
        for (std::int64_t node = site_ptr[last_site - 1]; node < last; ++node)
            scores[node - first] += tables_->end[labels[node]];
    }
    // The same without start and end.
    void score_features(std::int64_t n, std::vector<double>& scores) const {
        const std::int64_t first_site = design_.sequence_ptr[n], last_site = design_.sequence_ptr[n + 1];
        const auto& site_ptr = data_.candidates.site_ptr;
        const std::int64_t first = site_ptr[first_site], last = site_ptr[last_site];
        scores.resize(static_cast<std::size_t>(last - first));
        if (layout_.facets.empty())
            score_nodes(first, last, scores);
        else
            score_by_facet(first_site, last_site, scores);
    }

    const ArcScores& arcs() const { return tables_->arcs; }

  private:
    void score_nodes(std::int64_t first, std::int64_t last, std::vector<double>& scores) const {
        const Firing& fired = data_.weights;
        for (std::int64_t node = first; node < last; ++node) {
            double sum = 0;
            if (fired.values.size() > 0)
                for (std::int64_t i = fired.ptr[node]; i < fired.ptr[node + 1]; ++i)
                    sum += fired.values[i] * weights_[fired.ids[i]];
            else
                for (std::int64_t i = fired.ptr[node]; i < fired.ptr[node + 1]; ++i)
                    sum += weights_[fired.ids[i]];
            scores[node - first] = sum;
        }
    }
    // A site's features score facets, and the facets of its candidates add up.
    void score_by_facet(std::int64_t first_site, std::int64_t last_site, std::vector<double>& scores) const {
        const Facets& facets = layout_.facets;
        const std::int32_t shift = layout_.n_labels + 1;
        std::vector<double> by_facet;  // [facets]
        std::size_t node = 0;
        for (std::int64_t t = first_site; t < last_site; ++t) {
            by_facet.assign(static_cast<std::size_t>(facets.n), 0.0);
            add_site_scores(layout_, design_.features, t, weights_, shift, by_facet.data());
            for (std::int64_t k = data_.candidates.site_ptr[t]; k < data_.candidates.site_ptr[t + 1]; ++k) {
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
