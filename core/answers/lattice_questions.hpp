// The questions on a data set of lattices, wherever their scores come from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "answers/k_best.hpp"
#include "data/annotation.hpp"
#include "lattice/lattice.hpp"

namespace crfkit {

// One sequence, scored.
struct ScoredLattice {
    Lattice lattice;
    ArcScores own_arcs;         // scores of this sequence alone, where there are such
    const ArcScores* arcs;      // those that hold
    std::vector<double> nodes;  // [nodes] scores
};

// Gives the lattices of a data set, one after the other.
class LatticeSource {
  public:
    virtual ~LatticeSource() = default;
    virtual std::span<const std::int64_t> sequence_ptr() const = 0;  // [N + 1]
    virtual std::int32_t n_labels() const = 0;                       // L
    // Sequence n, which is not empty. Called from several threads at once, with a room for each.
    virtual void load(std::int64_t n, ScoredLattice& room) const = 0;
};

// The best labels of each sequence, into labels [T].
void best(const LatticeSource& source, std::int32_t* labels, int n_threads);
// P(y_t), into marginals [T, L].
void marginals(const LatticeSource& source, double* marginals, int n_threads);
// log Z of each sequence, into out [N]; `allowed` may restrict the labels (its weights are ignored).
void log_partitions(const LatticeSource& source, const Annotation* allowed, double* out, int n_threads);
std::vector<std::vector<ScoredLabels>> k_best(const LatticeSource& source, std::int64_t k, int n_threads);
// n samples of each sequence: uniforms and labels hold [n, length] for one sequence after the other.
void sample(const LatticeSource& source, std::int64_t n, const double* uniforms, std::int32_t* labels,
            int n_threads);

}  // namespace crfkit
