// Σ_n weight_n (log Z_n − log Z_gold,n) over a data set of segmentations, with its gradient: scaled
// forward–backward by kernels for all types at once (kernels/segment_kernels.hpp), T (K C + C²).
//
// What scaled numbers cannot hold is left to the path engine (training/part_loss.hpp): everything where the
// weights of lengths or transitions are too far apart, and single sequences whose messages show that
// something may have been lost.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "data/annotation.hpp"
#include "data/arc_model.hpp"
#include "data/blocks.hpp"
#include "data/residual_sums.hpp"
#include "data/scorer.hpp"
#include "segments/segment_pass.hpp"
#include "training/blocked_evaluator.hpp"
#include "training/part_loss.hpp"

namespace crfkit {

template <class Real>
class SegmentEvaluator final : public BlockedEvaluator {
  public:
    SegmentEvaluator(const SegmentData& data, const Annotation& gold, const ArcModel& arcs,
                     const FeatureGroups& groups, const std::vector<Block>& blocks, PartLoss& parts,
                     const PartSource& source);

    double evaluate(const double* w, const double* v, double* out, int n_threads) override;

  private:
    struct Work {
        Work(const SegmentData& data, const SegmentWeights& weights) : pass(data, weights) {}
        SegmentPass pass;
        Buffer<Real> states;   // [T, S]
        Buffer<double> probs;  // [T, S] weight · (P − gold)
        SegmentCounts counts;  // of the sequence
    };
    struct Slot {
        Buffer<Real> residuals;  // [positions of the block, S]
        BlockSums sums;
        SegmentCounts counts;
        std::vector<std::int64_t> hard;  // sequences that are left to the path engine
    };

    void open(std::size_t n_slots, std::size_t n_workers) override;
    void run_block(std::size_t i, std::size_t slot_number, std::size_t worker) override;
    void sum(std::size_t i, std::size_t slot_number, std::int64_t range) override;
    void merge(std::size_t i, std::size_t slot_number, std::int64_t range, double* out) override;
    void add(std::size_t i, std::size_t slot_number, std::int64_t range, double* out) override;
    void merge_counts(const Slot& slot);
    void finish(double* out, int n_threads) override;

    bool run_sequence(std::int64_t n, Work& work, Real* residuals);
    bool run_states(double weight, Work& work, double& log_partition);
    double add_gold(std::int64_t n, Work& work);

    const SegmentData& data_;
    const SegmentModel& model_;
    const std::vector<Block>& blocks_;
    PartLoss& parts_;
    const PartSource& source_;
    WeightTables<Real> tables_;
    Scorer<Real> scorer_;
    SegmentWeights segments_;
    ResidualSums<Real> sums_;
    std::vector<Work> work_;
    std::vector<Slot> slots_;
    SegmentCounts counts_;
    std::vector<double> own_sums_;  // [W] numbers of segment features
    std::vector<std::int64_t> hard_;
};

extern template class SegmentEvaluator<float>;
extern template class SegmentEvaluator<double>;

}  // namespace crfkit
