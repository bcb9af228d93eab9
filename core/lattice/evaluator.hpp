// Σ_n weight_n (log Z_n − log Z_gold,n) over a data set of lattices, with its gradient or its Hessian times a
// direction.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "data/annotation.hpp"
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

    void run_sequence(const LatticeBlock& block, std::int64_t n, Workspace& work, double* arc_sums);
    void add_by_facet(const LatticeBlock& block, std::int64_t n);
    std::int64_t open_block(std::size_t i, int n_threads) override;
    void run_chunk(std::size_t i, std::int64_t chunk, int worker) override;
    void collect(std::size_t i) override;
    std::int64_t n_tasks(std::size_t i) const override {
        return static_cast<std::int64_t>(blocks_[i].tasks.size()) - 1;
    }
    void gather(std::size_t i, std::int64_t task, double* out) override;
    void finish(double* out, int) override { data_.model.add_gradient(arcs_, start_, end_, out); }
    void gather_by_facet(const LatticeBlock& block, std::int64_t task, double* out) const;

    const LatticeData& data_;
    const std::vector<LatticeBlock>& blocks_;
    ArcTables tables_, direction_tables_;
    LatticeScorer<Real> scorer_, direction_;
    std::vector<Workspace> work_;
    Buffer<Real> residuals_;                       // [nodes of a block]
    Buffer<Real> facet_residuals_;                 // [positions of a block, facets]
    std::vector<std::vector<double>> chunk_arcs_;  // [chunks][A] Σ of arc marginals
    std::vector<double> arcs_;                     // [A] gradient of the scores of transitions
};

extern template class LatticeEvaluator<float>;
extern template class LatticeEvaluator<double>;

}  // namespace crfkit
