// Φ w for lattices: the scores of nodes and arcs at given weights.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "buffer.hpp"
#include "lattice.hpp"
#include "lattice_data.hpp"
#include "layout.hpp"

namespace crfkit {

// Real: the precision in which the weights of nodes are read (half the memory to wait for); sums are double.
template <class Real>
class LatticeScorer {
  public:
    LatticeScorer(const Layout& layout, const Design& design, const LatticeData& data)
        : layout_(layout), design_(design), data_(data) {}

    // Weights, or a direction of weights.
    void set(const double* w) {
        const auto n_pairs = static_cast<std::int64_t>(layout_.pair_labels.size());
        weights_.resize(n_pairs);
        for (std::int64_t p = 0; p < n_pairs; ++p) weights_[p] = static_cast<Real>(w[p]);
        const double* from = w + layout_.arcs_begin();
        arcs.scores.assign(static_cast<std::size_t>(data_.bigrams.n_arcs()), 0.0);
        for (std::size_t k = 0; k < arcs.scores.size(); ++k)
            for (std::int64_t i = data_.arc_ptr[k]; i < data_.arc_ptr[k + 1]; ++i)
                arcs.scores[k] += from[data_.arc_ids[i]];
        start_.assign(static_cast<std::size_t>(layout_.n_labels), 0.0);
        end_ = start_;
        data_.each_start(layout_, [&](std::int32_t b, std::size_t i) { start_[b] += from[i]; });
        data_.each_end(layout_, [&](std::int32_t b, std::size_t i) { end_[b] += from[i]; });
        arcs.exponentiate(data_.bigrams.soft);
    }

    // The scores of the nodes of sequence n, start and end folded in.
    void score(std::int64_t n, std::vector<double>& scores) const {
        const std::int64_t first_site = design_.sequence_ptr[n], last_site = design_.sequence_ptr[n + 1];
        const auto& site_ptr = data_.candidates.site_ptr;
        const std::int32_t* labels = data_.candidates.labels.data();
        const std::int64_t first = site_ptr[first_site], last = site_ptr[last_site];
        const Firing& fired = data_.weights;
        scores.resize(static_cast<std::size_t>(last - first));
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
        if (last_site == first_site) return;
        for (std::int64_t node = first; node < site_ptr[first_site + 1]; ++node)
            scores[node - first] += start_[labels[node]];
        for (std::int64_t node = site_ptr[last_site - 1]; node < last; ++node)
            scores[node - first] += end_[labels[node]];
    }

    ArcScores arcs;

  private:
    const Layout& layout_;
    const Design& design_;
    const LatticeData& data_;
    Buffer<Real> weights_;             // [P]
    std::vector<double> start_, end_;  // [L]
};

}  // namespace crfkit
