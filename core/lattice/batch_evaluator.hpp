// Σ_n weight_n (log Z_n − log Z_gold,n) for chains over many labels whose arcs are few, with its gradient or
// its Hessian times a direction: a batch of sequences at once, one per lane of a vector.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "base/compensated_sum.hpp"
#include "data/annotation.hpp"
#include "data/arc_model.hpp"
#include "data/candidates.hpp"
#include "data/design.hpp"
#include "data/feature_sums.hpp"
#include "data/layout.hpp"
#include "kernels/kernels.hpp"
#include "lattice/graph.hpp"
#include "paths/engine.hpp"
#include "training/blocked_evaluator.hpp"

namespace crfkit {

// Positions first_position..last_position−1, whose residuals are kept until they are added up by feature.
struct BatchBlock {
    std::int64_t first_position, last_position;
    std::vector<std::int32_t> sequences;  // longest first: batch i has the kBatch entries from i · kBatch on
    std::int64_t first_sequence, last_sequence;
    Inverted features;                 // for each feature its positions, counted from first_position
    std::vector<std::int64_t> ranges;  // [kRanges + 1] of the features
};

// A data set cut into batches of sequences of about equal length.
std::vector<BatchBlock> cut_into_batches(const Layout& layout, const Design& design, BlockUse use,
                                         int n_threads);

template <class Real>
class BatchEvaluator final : public BlockedEvaluator {
  public:
    BatchEvaluator(const Layout& layout, const Design& design, const Annotation& gold, const ArcModel& model,
                   const std::vector<BatchBlock>& blocks);

    double evaluate(const double* w, const double* v, double* out, int n_threads) override;

  private:
    // Weights, or a direction of weights, by what they score.
    struct Scores {
        Buffer<Real> pairs;  // [P]
        ArcTables tables;
    };
    struct Workspace {
        Buffer<Real> rows;                                      // [W, S] scores of one position of each lane
        Buffer<Real> states, forward, backward, pushed, probs;  // [T, L, W]
        Buffer<Real> mass, inverse_mass;                        // [T, W]
        Buffer<Real> direction, d_forward, d_backward, d_pushed;  // [T, L, W]
        Buffer<Real> shift, extra;
        std::vector<Total> maxima,
            gold;  // [W] over the positions of a lane: maxima, scores of the gold labels
        Lattice lattice;
        PathEngine engine;
        std::vector<double> node_scores, node_direction;
        std::vector<double> plain, changes;  // [A] products of messages
    };

    // What one block is evaluated in.
    struct Slot {
        Buffer<Real> residuals;    // [positions of the block, S]
        std::vector<double> arcs;  // [A] expectations of arcs
        Ends ends;
        FeatureSums sums;
    };

    void set(const double* w, Scores& scores) const;
    void set_arcs();
    void run_batch(const BatchBlock& block, std::int64_t batch, Slot& slot, Workspace& work);
    void load(const std::int32_t* sequences, int n_lanes, std::int64_t t, Workspace& work);
    void score_position(const Scores& scores, std::int64_t n, std::int64_t position, double pad,
                        Real* row) const;
    void add_products(std::int64_t n_positions, const std::int32_t* sequences, int n_lanes, double* arcs,
                      Workspace& work);
    void write_residuals(const BatchBlock& block, const std::int32_t* sequences, int n_lanes,
                         std::int64_t n_positions, const Workspace& work, Slot& slot);
    void take_gold(const BatchBlock& block, std::int64_t n, Slot& slot);
    double run_alone(const BatchBlock& block, std::int64_t n, double weight, bool gold_only, Slot& slot,
                     Workspace& work);
    void open(std::size_t n_slots, std::size_t n_workers) override;
    void run_block(std::size_t i, std::size_t slot_number, std::size_t worker) override;
    void merge(std::size_t i, std::size_t slot_number, std::int64_t range, double* out) override;
    void finish(double* out, int) override { model_.add_gradient(arcs_, ends_.start, ends_.end, out); }
    Real* residuals(const BatchBlock& block, std::int64_t position, Slot& slot) const {
        return slot.residuals.data() + (position - block.first_position) * stride_;
    }
    static std::int64_t n_batches(const BatchBlock& block) {
        return (static_cast<std::int64_t>(block.sequences.size()) + kBatch<Real> - 1) / kBatch<Real>;
    }

    const ArcModel& model_;
    const Bigrams& bigrams_;
    const std::vector<BatchBlock>& blocks_;
    const Kernels<Real>& kernels_;
    const std::int32_t stride_;  // S
    Scores scores_, direction_;
    Buffer<Real> in_weight_, in_moved_, out_weight_, out_moved_;  // [A]
    SparseArcs<Real> sparse_;
    std::vector<Workspace> work_;
    std::vector<Slot> slots_;
    std::vector<double> arcs_;  // [A]
};

extern template class BatchEvaluator<float>;
extern template class BatchEvaluator<double>;

}  // namespace crfkit
