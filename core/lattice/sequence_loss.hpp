// The sequences of a design with lattices, one at a time: scored from the weights that each of them touches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/buffer.hpp"
#include "data/annotation.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "lattice/data.hpp"
#include "lattice/lattice.hpp"
#include "lattice/row_bits.hpp"
#include "paths/engine.hpp"
#include "training/sequence_loss.hpp"

namespace crfkit {

// For plain designs. Everything must outlive it. A slot is a weight; features with few weights are touched as
// a whole, all other weights one by one.
class LatticeSequences final : public SequenceSource {
  public:
    LatticeSequences(const Layout& layout, const Design& design, const Annotation& gold,
                     const LatticeData& data);

    std::int64_t n_sequences() const override { return design.n_sequences(); }
    std::int64_t n_slots() const override { return layout.n_weights(); }
    bool slots_are_weights() const override { return true; }
    void pack(const double* w, double, double* slots) const override { std::copy_n(w, n_slots(), slots); }
    void unpack(const double* slots, double* w) const override { std::copy_n(slots, n_slots(), w); }
    void each_slot_range(const std::function<void(SlotRange)>& function) const override;
    std::unique_ptr<SequenceLoss> open() const override;

    // Whether the weights of feature f make one range.
    bool is_short(std::int32_t f) const { return layout.pair_ptr[f + 1] - layout.pair_ptr[f] <= kShort; }

    const Layout& layout;
    const Design& design;
    const Annotation& gold;
    const LatticeData& data;
    // What features score: labels or their facets, numbered from 0 on. Label b has the outcomes
    // outcomes[outcome_ptr[b]..outcome_ptr[b+1]−1]; pair p scores outcome pair_labels[p] − first_outcome.
    std::vector<std::int64_t> outcome_ptr;  // [L + 1]
    std::vector<std::int32_t> outcomes;
    std::int32_t n_outcomes, first_outcome;
    RowBits row_bits;

  private:
    static constexpr std::int64_t kShort = 16;  // weights
};

// Residuals: one for each node, then one for each listed arc of the sequence, which counts it once however
// often its labels follow each other.
class LatticeSequence final : public SequenceLoss {
  public:
    explicit LatticeSequence(const LatticeSequences& source);

    void load(std::int64_t n) override;
    std::int64_t n_residuals() const override {
        return static_cast<std::int64_t>(lattice_.labels.size()) + arcs_.size();
    }
    double differentiate(const double* weights, double* residuals) override;
    void gradient(const double* residuals, double* gradient) override;

  private:
    // A weight of a position: its number among those of the sequence, and the outcome that it scores.
    struct Entry {
        std::int32_t weight, outcome;
    };
    // Lists of weights, one for each listed arc, first node and last node.
    struct WeightLists {
        std::vector<std::int64_t> ptr{0};
        std::vector<std::int32_t> ids;  // among those of the sequence

        std::int64_t size() const { return static_cast<std::int64_t>(ptr.size()) - 1; }
        void clear();
        double sum(std::int64_t i, const double* weights) const;
        void spread(std::int64_t i, double residual, double* gradient) const;
    };

    void load_position(std::int64_t t);
    void fetch_weights(std::int32_t feature) const;
    void add_row(std::int32_t feature);
    void add_single_weights(std::int32_t feature);
    void clear_outcomes(std::int64_t t);
    void load_arcs();
    void load_ends();
    std::int32_t place_of(std::int64_t slot);
    void add_list(WeightLists& lists, std::span<const std::int64_t> weights);
    template <class Function>
    void each_outcome(std::int64_t node, const Function& function) const;

    const LatticeSequences& source_;
    std::int64_t n_ = 0, first_ = 0, n_positions_ = 0;
    Lattice lattice_;  // arcs numbered among those of the sequence
    PathEngine engine_;
    std::vector<Entry> entries_;
    std::vector<double> values_;            // [entries]; empty: all 1
    std::vector<std::int64_t> entry_ptr_;   // [T + 1] the entries of each position
    WeightLists arcs_, starts_, ends_;      // of listed arcs, of the nodes of the first and last position
    Buffer<std::int32_t> places_;           // [D] of a weight, or of a row where it begins, −1: not touched
    std::vector<std::int32_t> arc_places_;  // [A] of a listed arc among those of the sequence, −1: not there
    std::vector<std::int32_t> listed_;      // these arcs
    std::vector<std::int32_t> counts_;      // [outcomes] candidates of a position that have each
    OutcomeBits decides_;                   // whether some of the candidates have it, and some not
    std::vector<double> by_outcome_;        // [outcomes] scores or residuals of a position
    ArcScores arc_scores_;
    std::vector<double> scores_;  // [nodes]
};

}  // namespace crfkit
