// One sequence's share of the objective: weight · (log Z − log Z_gold), with its derivatives by the scores of
// nodes and arcs.
#pragma once

#include <cstdint>
#include <vector>

#include "data/annotation.hpp"
#include "lattice/lattice.hpp"
#include "paths/engine.hpp"

namespace crfkit {

// How the scores of a lattice move: per node, and per number of an arc.
struct LatticeDirection {
    const std::vector<double>& nodes;
    const std::vector<double>& arcs;
};

// Where the derivatives by the scores are added: weight · (P − P_gold), or how it moves along a direction.
template <class Real>
struct LatticeResiduals {
    Real* nodes;   // [nodes of the lattice]
    double* arcs;  // by the number of the arc
};

// `scores` [nodes] is changed where the labels of the sequence, which begins at `first_position` of `gold`,
// are not all known. Without direction the residuals are ∇, with one ∇² · direction. NaN when no label
// sequence is possible.
template <class Real>
double lattice_loss(const Lattice& lattice, PathEngine& engine, const ArcScores& arcs,
                    std::vector<double>& scores, const LatticeDirection* direction, const Annotation& gold,
                    std::int64_t first_position, double weight, const LatticeResiduals<Real>& residuals);

extern template double lattice_loss(const Lattice&, PathEngine&, const ArcScores&, std::vector<double>&,
                                    const LatticeDirection*, const Annotation&, std::int64_t, double,
                                    const LatticeResiduals<float>&);
extern template double lattice_loss(const Lattice&, PathEngine&, const ArcScores&, std::vector<double>&,
                                    const LatticeDirection*, const Annotation&, std::int64_t, double,
                                    const LatticeResiduals<double>&);

}  // namespace crfkit
