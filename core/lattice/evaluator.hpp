// Σ_n weight_n (log Z_n − log Z_gold,n) over a data set of lattices, with its gradient or its Hessian times a
// direction.
//
// Like the evaluator for dense chains in two halves, block by block: sequence by sequence (node scores →
// residuals of nodes), then weight by weight (residuals → gradient). The same bits for any number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "data/annotation.hpp"
#include "lattice/data.hpp"
#include "lattice/lattice.hpp"
#include "lattice/scorer.hpp"
#include "paths/engine.hpp"

namespace crfkit {

// Real: the precision in which weights are read and residuals stored; messages are always double.
template <class Real>
class LatticeEvaluator {
  public:
    LatticeEvaluator(const Layout& layout, const Design& design, const Annotation& gold,
                     const LatticeData& data, const std::vector<LatticeBlock>& blocks);

    // Fills out[D] with the gradient at w, or with H·v when v is given. Returns the value.
    double evaluate(const double* w, const double* v, double* out, int n_threads);
    static constexpr bool unsafe = false;

  private:
    struct Workspace {
        Lattice lattice;
        PathEngine engine;
        std::vector<double> scores, direction;  // [nodes]
    };

    void run_sequence(const LatticeBlock& block, std::int64_t n, Workspace& work, double* arc_sums);
    void add_by_facet(const LatticeBlock& block, std::int64_t n);
    void collect(const LatticeBlock& block);
    void gather(const LatticeBlock& block, std::int64_t task, double* out) const;
    void gather_by_facet(const LatticeBlock& block, std::int64_t task, double* out) const;

    const Layout& layout_;
    const Design& design_;
    const Annotation& gold_;
    const LatticeData& data_;
    const std::vector<LatticeBlock>& blocks_;
    ArcTables tables_, direction_tables_;
    LatticeScorer<Real> scorer_, direction_;
    bool hessian_vector_ = false;
    std::vector<Workspace> work_;
    Buffer<Real> residuals_;                       // [nodes of a block]
    Buffer<Real> facet_residuals_;                 // [positions of a block, facets]
    std::vector<std::vector<double>> chunk_arcs_;  // [chunks][A] Σ of arc marginals
    std::vector<double> arcs_, start_, end_;       // [A], [L], [L] gradient of the arcs' scores
    std::vector<double> losses_;                   // [N]
};

extern template class LatticeEvaluator<float>;
extern template class LatticeEvaluator<double>;

}  // namespace crfkit
