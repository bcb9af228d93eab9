// Σ_n weight_n (log Z_n − log Z_gold,n) over a data set of trellises, with its gradient or its Hessian times
// a direction.
//
// Sequences that share a trellis go in batches, one per lane of a vector, and exp of an arc's score is taken
// once for all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "base/compensated_sum.hpp"
#include "base/forks.hpp"
#include "data/annotation.hpp"
#include "data/arc_model.hpp"
#include "data/blocks.hpp"
#include "data/residual_sums.hpp"
#include "data/scorer.hpp"
#include "kernels/kernels.hpp"
#include "paths/engine.hpp"
#include "patterns/batches.hpp"
#include "patterns/step_weights.hpp"
#include "patterns/trellis.hpp"
#include "patterns/trellis_graph.hpp"
#include "training/blocked_evaluator.hpp"

namespace crfkit {

template <class Real>
class PatternEvaluator final : public DataEvaluator {
  public:
    PatternEvaluator(const Trellises& trellises, const Annotation& gold, const FeatureGroups& groups,
                     const std::vector<Block>& blocks, const PatternBatches& batches, std::int64_t n_weights);

    double evaluate(const double* w, const double* v, double* out, int n_threads) override;

  private:
    struct Workspace {
        Buffer<Real> rows;                                   // [W, T, S] scores, then exp(score − maximum)
        Buffer<Real> states, probs;                          // [T, L, W]
        Buffer<Real> forward, following;                     // of all levels, see StepMessages
        std::vector<std::int64_t> forward_at, following_at;  // [T + 2] where those of a step begin
        Buffer<Real> mass, inverse_mass;                     // [T + 2, W] of each level
        std::vector<Total> maxima;                           // [W] Σ of the maxima of a lane's positions
        std::vector<double> scores, direction;               // [T, L]
        TrellisPlaces places;
        PathEngine engine;
    };
    // Sequences that share a trellis: with all labels, or with those that their annotation admits.
    struct Lanes {
        std::span<const std::int32_t> sequences;
        bool admitted;
    };
    // What a chunk of batches adds to the expectations of arcs, or to their changes.
    struct ChunkSums {
        std::vector<double> products;  // [arcs] Σ forward · following: still to be multiplied by the weight
        std::vector<double> direct;    // [arcs] of sequences that were run alone; empty: none was
    };

    void run_batch(const Block& block, std::span<const std::int32_t> sequences, ChunkSums& sums,
                   Workspace& work);
    void run_lanes(const Block& block, const Lanes& lanes, std::span<const std::int32_t> steps,
                   ChunkSums& sums, Workspace& work);
    void load(const Lanes& lanes, std::int64_t T, Workspace& work);
    void score(std::int64_t n, bool admitted, Real* rows);
    void pass_forward(std::span<const std::int32_t> steps, Workspace& work);
    void pass_backward(std::span<const std::int32_t> steps, Workspace& work, Real* largest);
    void add_products(std::span<const std::int32_t> steps, const Real* weights, ChunkSums& sums,
                      Workspace& work);
    void add_residuals(const Block& block, const Lanes& lanes, std::int64_t t, const Real* weights,
                       const Workspace& work);
    double run_alone(const Block& block, std::int64_t n, bool admitted, ChunkSums& sums, Workspace& work);
    void run_block(std::size_t i, double* out, int n_threads);
    void run_chunk(std::size_t i, std::int64_t chunk, int worker);
    void subtract_gold(std::size_t i);
    void finish(double* out, int n_threads);
    Real* residuals(const Block& block, std::int64_t position) {
        return residuals_.data() + (position - block.first_position) * tables_.stride;
    }

    const Trellises& trellises_;
    const StepTable& table_;
    const std::vector<Block>& blocks_;
    const PatternBatches& batches_;
    const std::int64_t n_weights_;  // D
    const ArcModel model_;
    WeightTables<Real> tables_, direction_tables_;
    Scorer<Real> scorer_, direction_;
    ResidualSums<Real> sums_;

    StepScores arc_scores_, arc_direction_;
    Once exponentiated_;  // whether arc_scores_ has its weights
    StepWeights<Real> arcs_;

    std::vector<Workspace> work_;
    std::vector<ChunkSums> chunks_;
    Buffer<Real> residuals_;  // [positions of a block, S]
    BlockSums block_sums_;
    Ends ends_;
    std::vector<double> gold_scores_;  // [N] of the gold labels, 0 where not all are known
    double gold_arc_score_ = 0;  // Σ_n weight · score of the arcs of the gold labels, where all are known
};

extern template class PatternEvaluator<float>;
extern template class PatternEvaluator<double>;

}  // namespace crfkit
