// One sequence of a data set as a lattice with its scores, and where such sequences come from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lattice/graph.hpp"
#include "lattice/lattice.hpp"
#include "paths/engine.hpp"

namespace crfkit {

struct ScoredLattice {
    Lattice lattice;
    ArcScores own_arcs;         // scores of this sequence alone, where there are such
    const ArcScores* arcs;      // those that hold
    std::vector<double> nodes;  // [nodes] scores
    PathEngine engine;          // for questions on its paths
    std::vector<double> best;   // [nodes] for Viterbi

    LatticeGraph graph() const { return LatticeGraph(lattice, *arcs, nodes); }
};

// Gives the lattices of a data set, one after the other.
class LatticeSource {
  public:
    virtual ~LatticeSource() = default;
    virtual std::span<const std::int64_t> sequence_ptr() const = 0;  // [N + 1]
    virtual std::int32_t n_labels() const = 0;                       // L
    // Sequence n, which is not empty. Called from several threads at once, with a `scored` for each.
    virtual void load(std::int64_t n, ScoredLattice& scored) const = 0;
};

}  // namespace crfkit
