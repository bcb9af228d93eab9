// Σ_n weight_n (log Z_n − log Z_gold,n) over a data set of lattices, with its gradient or its Hessian times a
// direction.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "data/annotation.hpp"
#include "data/feature_sums.hpp"
#include "lattice/data.hpp"
#include "lattice/lattice.hpp"
#include "lattice/scorer.hpp"
#include "paths/engine.hpp"
#include "training/blocked_evaluator.hpp"

namespace crfkit {

// Real: the precision in which weights are read and residuals stored; messages are always double.
template <class Real>
class LatticeEvaluator final : public BlockedEvaluator {
  public:
    LatticeEvaluator(const Layout& layout, const Design& design, const Annotation& gold,
                     const LatticeData& data, const std::vector<LatticeBlock>& blocks);

    double evaluate(const double* w, const double* v, double* out, int n_threads) override;

  private:
    struct Workspace {
        Lattice lattice;
        PathEngine engine;
        std::vector<double> scores, direction;  // [nodes]
    };

    // What one block is evaluated in.
    struct Slot {
        Buffer<Real> residuals;        // [nodes of the block]
        Buffer<Real> facet_residuals;  // [positions of the block, facets]
        std::vector<double> arcs;      // [A] Σ of arc marginals
        Ends ends;
        Buffer<double> weight_sums;  // [lists]
        FeatureSums facet_sums;      // in place of these where labels have facets
    };

    void open(std::size_t n_slots, std::size_t n_workers) override;
    void run_block(std::size_t i, std::size_t slot_number, std::size_t worker) override;
    void merge(std::size_t i, std::size_t slot_number, std::int64_t range, double* out) override;
    void finish(double* out, int) override { data_.model.add_gradient(arcs_, ends_.start, ends_.end, out); }
    void run_sequence(const LatticeBlock& block, std::int64_t n, Slot& slot, Workspace& work);
    void add_by_facet(const LatticeBlock& block, std::int64_t n, Slot& slot) const;
    void add_ends(const LatticeBlock& block, std::int64_t n, Slot& slot) const;
    void sum_weights(const LatticeBlock& block, Slot& slot) const;

    const LatticeData& data_;
    const std::vector<LatticeBlock>& blocks_;
    ArcTables tables_, direction_tables_;
    LatticeScorer<Real> scorer_, direction_;
    std::vector<Workspace> work_;
    std::vector<Slot> slots_;
    std::vector<double> arcs_;  // [A] gradient of the scores of transitions
};

extern template class LatticeEvaluator<float>;
extern template class LatticeEvaluator<double>;

}  // namespace crfkit
