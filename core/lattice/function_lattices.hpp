// Lattices whose nodes and arcs have features of their own: the general case, for anything that can look at
// two neighbouring labels and the input.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/candidates.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "lattice/part_features.hpp"
#include "lattice/scored_lattice.hpp"

namespace crfkit {

// The arcs of lattices, written out: sequence after sequence, first those out of the start (before = L,
// position 0), then those into each position, and last those into the end (after = L, position = length of
// the sequence).
struct ArcList {
    std::vector<std::int32_t> before, after, position;  // [A]
};

// The nodes and arcs of some sequences. Arcs are those between labels that a layout lists as existing, and
// those out of the start and into the end that are asked for. (Arcs that a soft layout does not list exist
// too; they score 0, have no features and are not counted.)
class Lattices {
  public:
    // starts, ends [L]: whether the arc from the start into a label, from a label into the end is one of the
    // parts. Throws std::invalid_argument, naming the sequence, where no label sequence is possible.
    Lattices(std::shared_ptr<const Layout> layout, std::shared_ptr<const Design> design,
             std::span<const std::uint8_t> starts, std::span<const std::uint8_t> ends, int n_threads);

    std::int64_t n_sequences() const { return design->n_sequences(); }
    std::int64_t n_arcs() const { return arc_ptr.back(); }
    ArcList arcs(int n_threads) const;
    // Throws std::invalid_argument unless all weights are below n_weights and there is one part for each of
    // ours.
    void check(const ActiveFeatures& active, std::int64_t n_weights) const;

    // The scores that `active` gives to sequence n at w, start and end folded into the nodes; `lattice` must
    // be built already, with arcs numbered as listed.
    void score(const std::vector<ActiveFeatures>& active, const double* w, std::int64_t n,
               const Lattice& lattice, std::vector<double>& nodes, std::vector<double>& arcs) const;
    // The lattice of sequence n. Listed arcs between labels are numbered from 0, in their order.
    void build(std::int64_t n, Lattice& lattice) const;
    // Calls function(k, node) for every arc k out of the start and every arc into the end; arcs and nodes
    // are counted from the first of the sequence.
    template <class Function>
    void each_boundary_arc(std::int64_t n, const Lattice& lattice, const Function& function) const {
        std::int64_t k = 0;
        for (std::int64_t j = 0; j < lattice.position_ptr[1]; ++j)
            if (starts_[lattice.labels[j]]) function(k++, j);
        k = arc_ptr[n + 1] - arc_ptr[n];
        for (std::int64_t j = lattice.n_nodes() - 1; j >= lattice.position_ptr[lattice.n_positions() - 1];
             --j)
            if (ends_[lattice.labels[j]]) function(--k, j);
    }
    // How many arcs of sequence n come out of the start: the first one between labels has this number.
    std::int64_t n_starts(const Lattice& lattice) const;

    std::shared_ptr<const Layout> layout;
    std::shared_ptr<const Design> design;
    Bigrams bigrams;
    Candidates candidates;
    std::vector<std::int64_t> arc_ptr;  // [N + 1] arcs arc_ptr[n]..arc_ptr[n+1]−1 are those of sequence n

  private:
    std::vector<std::uint8_t> starts_, ends_;  // [L]
};

// The same lattices at given weights. Lattices, arrays of features and weights must outlive it.
class ActiveSource : public LatticeSource {
  public:
    ActiveSource(const Lattices& lattices, std::vector<ActiveFeatures> active, std::span<const double> w);

    std::span<const std::int64_t> sequence_ptr() const override { return lattices_.design->sequence_ptr; }
    std::int32_t n_labels() const override { return lattices_.bigrams.n_labels; }
    void load(std::int64_t n, ScoredLattice& scored) const override;

  private:
    const Lattices& lattices_;
    std::vector<ActiveFeatures> active_;
    const double* w_;
};

}  // namespace crfkit
