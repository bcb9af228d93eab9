// Σ_n weight_n (log Z_n − log Z_gold,n) over a data set of segmentations, with its gradient: scaled
// forward–backward by kernels for all types at once (kernels/segment_kernels.hpp), T (K C + C²).
//
// What scaled numbers cannot hold is left to the path engine (training/part_loss.hpp): everything where the
// weights of lengths or transitions are too far apart, and single sequences whose messages show that
// something may have been lost.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "data/annotation.hpp"
#include "data/arc_model.hpp"
#include "data/blocks.hpp"
#include "data/residual_sums.hpp"
#include "data/scorer.hpp"
#include "segments/segment_model.hpp"
#include "training/blocked_evaluator.hpp"
#include "training/part_loss.hpp"

namespace crfkit {

// Expected numbers of what segments have, in rows of types.
struct SegmentCounts {
    Buffer<double> transitions;                        // [C, Q]
    Buffer<double> start, end, entering, beyond;       // [Q]
    Buffer<double> lengths;                            // [K, Q]
    std::vector<std::pair<std::int64_t, double>> own;  // of segment features: (own weight, number)

    void clear(std::int64_t n_types, std::int64_t n_lengths, std::int64_t stride);
    // The first n_lengths rows of lengths alone.
    void add(const SegmentCounts& other, double weight, std::int64_t n_lengths);
};

// The weights of segments, in exp space and as scores.
class SegmentWeights {
  public:
    SegmentWeights(const SegmentData& data, const ArcModel& arcs);

    // False where numbers are too far apart for scaled messages.
    bool set(const double* w);
    // Adds the gradient of all weights but those of features of positions.
    void add_gradient(const SegmentCounts& counts, double* out) const;
    double length(std::int32_t c, std::int64_t k) const;
    double transition(std::int32_t before, std::int32_t c) const {
        return before < 0 ? start_[c] : c < 0 ? end_[before] : scores_[before * table.stride + c];
    }

    const Kernels<double>& kernels;
    SegmentTable<double> table;
    const double* own = nullptr;  // [W] at w

  private:
    const SegmentData& data_;
    const SegmentModel& model_;
    const ArcModel& arcs_;
    ArcTables arc_scores_;
    std::vector<double> scores_, start_, end_;  // [C, Q], [Q] −inf: absent
    Buffer<double> weights_, transposed_, exp_start_, exp_end_, lengths_, beyond_, longer_;
};

template <class Real>
class SegmentEvaluator final : public BlockedEvaluator {
  public:
    SegmentEvaluator(const SegmentData& data, const Annotation& gold, const ArcModel& arcs,
                     const std::vector<Block>& blocks, PartLoss& parts, const PartSource& source);

    double evaluate(const double* w, const double* v, double* out, int n_threads) override;

  private:
    struct Work {
        Buffer<Real> states;                      // [T, S]
        Buffer<double> row, rows, rows_of_cells;  // one row of labels; all messages; factors of cells
        Buffer<double> probs;                     // [T, S] weight · P(y_t)
        std::vector<std::int32_t> cells;          // [T, K]
        std::vector<std::int64_t> cell_numbers;   // of the data set
        Buffer<double> cell_probs;
        SegmentCounts counts, of_sequence;
        double partition;
    };
    struct Chunk {
        SegmentCounts counts;
        std::vector<std::int64_t> hard;  // sequences that are left to the path engine
    };

    std::int64_t open_block(std::size_t i, int n_threads) override;
    void run_chunk(std::size_t i, std::int64_t chunk, int worker) override;
    void collect(std::size_t i) override;
    std::int64_t n_tasks(std::size_t i) const override {
        return static_cast<std::int64_t>(blocks_[i].tasks.size());
    }
    void gather(std::size_t i, std::int64_t task, double* out) override {
        sums_.add(i, blocks_[i].tasks[task], residuals_.data(), nullptr, out);
    }
    void finish(double* out, int n_threads) override;

    bool run_sequence(std::int64_t n, Work& work, Real* residuals);
    bool run_states(std::int64_t n, double weight, Work& work, double& log_partition);
    bool read_cells(std::int64_t n, Work& work);
    void add_probs(std::int64_t T, double weight, const SegmentSums<double>& sums, Work& work);
    void count_features(double weight, Work& work);
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
    std::vector<std::int32_t> type_of_;  // [L]
    std::vector<std::uint8_t> begins_;   // [L] whether a segment begins with the label
    Buffer<Real> residuals_;             // [positions of a block, S]
    std::vector<Work> work_;
    std::vector<Chunk> chunks_;
    SegmentCounts counts_;
    std::vector<std::int64_t> hard_;
};

extern template class SegmentEvaluator<float>;
extern template class SegmentEvaluator<double>;

}  // namespace crfkit
