// The sequences of a design in rows and single weights, one at a time: scored by vector kernels from the
// weights that each of them touches.
#pragma once

#include <cstdint>
#include <memory>

#include "chain/workspace.hpp"
#include "data/annotation.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "data/touched_lists.hpp"
#include "training/sequence_loss.hpp"

namespace crfkit {

// layout, design and gold must outlive it.
class ChainSequences final : public SequenceSource {
  public:
    ChainSequences(const Layout& layout, const Design& design, const Annotation& gold, int n_threads);

    std::int64_t n_sequences() const override { return design.n_sequences(); }
    // Rows of S slots each, then all weights in their order (those of rows once more, untouched).
    std::int64_t n_slots() const override { return first_slot() + layout.n_weights(); }
    void pack(const double* w, double other, double* slots) const override;
    void unpack(const double* slots, double* w) const override;
    void each_slot_range(const std::function<void(SlotRange)>& function) const override;
    std::unique_ptr<SequenceLoss> open() const override;
    // What is large is to be read from a file.
    void move_to(ScratchMemory& memory) {
        for (TouchedLists* lists : {&rows, &singles, &arcs}) lists->move_to(memory);
        memory.take(single_labels);
        memory.take(exists);
    }

    const Layout& layout;
    const Design& design;
    const Annotation& gold;
    TouchedLists rows, singles, arcs;    // features with whole rows, single weights, features of arcs
    Buffer<std::int32_t> single_labels;  // [U of singles]
    Buffer<std::int8_t> exists;          // [rows, S] whether a label has a weight there
    const std::int32_t stride;           // S

    // The slot of weight 0 among all weights.
    std::int64_t first_slot() const { return static_cast<std::int64_t>(layout.row_features.size()) * stride; }

  private:
    // found(slot, weight) for all weights in rows.
    template <class Function>
    void each_in_rows(const Function& found) const;
};

// Residuals, with S = stride, where P are marginals and C counts the arcs into position t that have features:
//   positions [T, S]     weight · (P(y_t) − P_gold(y_t))
//   arcs  [L, S]     weight · Σ_t (P(y_{t−1}, y_t) − P_gold)
//   own   [C, L, S]  the same for each position whose arcs have features
class ChainSequence final : public SequenceLoss {
  public:
    explicit ChainSequence(const ChainSequences& source);

    void load(std::int64_t n) override;
    std::int64_t n_residuals() const override {
        return n_positions_ * stride() + (1 + n_own_) * table_size();
    }
    double differentiate(const double* weights, double* residuals) override;
    void gradient(const double* residuals, double* gradient) override;

  private:
    std::int64_t stride() const { return tables_.stride; }
    std::int64_t table_size() const { return source_.layout.n_labels * stride(); }
    double* arc_residuals(double* residuals) const { return residuals + n_positions_ * stride(); }

    void score(const double* weights);
    const double* score_dense(const double* weights);
    const double* score_arcs(const double* weights);
    double take_off_gold(double* arcs) const;
    double add_marginals(double weight, bool first, double* residuals);
    double add_in_log_space(double weight, bool first, double* residuals);
    double diverge(double* residuals) const;
    void add_pairs(const Messages<double>& messages, double weight, double* arcs);
    double* sum_dense(const double* residuals, double* gradient);
    double* sum_arcs(const double* residuals, double* gradient) const;

    const ChainSequences& source_;
    WeightTables<double> tables_;  // arcs, start and end at the weights of the sequence; rows are in rows_
    Scorer<double> scorer_;
    SharedArcs<double> shared_;
    Workspace<double> work_;
    const bool some_arcs_missing_;
    bool safe_ = true;
    std::int64_t n_ = 0, first_ = 0, n_positions_ = 0, n_own_ = 0;
    Buffer<double> dense_, products_;
};

}  // namespace crfkit
