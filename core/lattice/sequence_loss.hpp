// The sequences of a design with lattices, one at a time, at the weights that each of them touches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/annotation.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "data/touched_lists.hpp"
#include "lattice/data.hpp"
#include "lattice/lattice.hpp"
#include "paths/engine.hpp"
#include "training/sequence_loss.hpp"

namespace crfkit {

// All that it is made from must outlive it.
class LatticeSequences final : public SequenceSource {
  public:
    LatticeSequences(const Layout& layout, const Design& design, const Annotation& gold,
                     const LatticeData& data, int n_threads);

    std::int64_t n_sequences() const override { return design.n_sequences(); }
    std::int64_t n_slots() const override { return layout.n_weights(); }
    void pack(const double* w, double, double* slots) const override { std::copy_n(w, n_slots(), slots); }
    void unpack(const double* slots, double* w) const override { std::copy_n(slots, n_slots(), w); }
    void each_slot_range(const std::function<void(SlotRange)>& function) const override;
    std::unique_ptr<SequenceLoss> open() const override;

    const Layout& layout;
    const Design& design;
    const Annotation& gold;
    const LatticeData& data;
    TouchedLists lists;  // of weights and the nodes they score; with facets, of features and their positions
};

// Residuals: weight · (P − P_gold) of all nodes, then of all arcs of the lattice.
class LatticeSequence final : public SequenceLoss {
  public:
    explicit LatticeSequence(const LatticeSequences& source);

    void load(std::int64_t n) override;
    std::int64_t n_residuals() const override {
        return n_positions_ == 0 ? 0 : lattice_.n_nodes() + static_cast<std::int64_t>(numbers_.size());
    }
    double differentiate(const double* weights, double* residuals) override;
    void gradient(const double* residuals, double* gradient) override;

  private:
    void touch_arc(std::span<const std::int64_t> weights);
    template <class Function>
    void each_boundary_node(const Function& function) const;
    void score_nodes(const double* weights);
    void score_facets(const double* weights);
    void sum_facets(const double* residuals, double* gradient);
    double sum_of(std::span<const std::int64_t> weights, const double* of_arcs) const;

    const LatticeSequences& source_;
    Lattice lattice_;
    PathEngine engine_;
    ArcScores arcs_;                        // of the arcs of the lattice
    std::vector<std::int32_t> numbers_;     // [arcs of the lattice] their numbers among the listed arcs
    std::vector<std::int32_t> own_;         // [arcs of the lattice] 0, 1, 2, … where listed, else −1
    std::vector<std::int64_t> arc_places_;  // [weights of arcs] place among those of the sequence, or −1
    std::vector<std::int64_t> arc_ids_;     // the weights of arcs that the sequence touches, ascending
    std::vector<double> scores_, by_facet_;
    std::int64_t n_ = 0, first_ = 0, n_positions_ = 0, n_state_weights_ = 0;
};

}  // namespace crfkit
