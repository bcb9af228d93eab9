// One sequence as a lattice: nodes are the candidate labels of its positions, arcs link nodes of neighbouring
// positions.
// The questions on it are those on its paths (lattice/graph.hpp). Inputs that list arcs, structures.Lattice
// in Python, are word lattices (segments/word_lattice.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "data/annotation.hpp"
#include "data/arc_model.hpp"
#include "data/bigrams.hpp"
#include "data/candidates.hpp"

namespace crfkit {

// The arcs from START to the nodes of the first position, one each, and then those from the last position
// into END. Sources of the latter count from END.
struct BoundaryArcs {
    std::vector<std::int64_t> in_ptr;     // [first nodes + 2]
    std::vector<std::int32_t> from, arc;  // no arc is listed

    std::int64_t n_arcs() const { return static_cast<std::int64_t>(from.size()); }
};

class Lattice {
  public:
    // The arcs among the candidates of positions first..last−1.
    void build(const Bigrams& bigrams, const Candidates& candidates, std::int64_t first, std::int64_t last);

    std::int64_t n_positions() const { return static_cast<std::int64_t>(position_ptr.size()) - 1; }
    std::int64_t n_nodes() const { return position_ptr.back(); }
    std::int64_t n_arcs() const { return static_cast<std::int64_t>(from.size()); }
    std::int64_t n_arcs_into(std::int64_t t) const {
        return in_ptr[position_ptr[t + 1]] - in_ptr[position_ptr[t]];
    }

    // The node of a label at position t, which must be one of its candidates.
    std::int64_t find_node(std::int64_t t, std::int32_t label) const;
    // Place of the arc between two nodes; −1 when there is none.
    std::int64_t find_arc(std::int64_t before, std::int64_t node) const;
    // Closes the nodes whose labels an annotation does not admit; position t is its position first_position +
    // t.
    void close(const Annotation& annotation, std::int64_t first_position, std::vector<double>& scores) const;

    std::vector<std::int64_t> position_ptr;  // [T + 1] the nodes of each position
    std::vector<std::int32_t> labels;        // [nodes]
    std::vector<std::int64_t> in_ptr;        // [nodes + 1] the arcs into each node
    std::vector<std::int32_t> from;          // [arcs] node before
    std::vector<std::int32_t> arc;           // [arcs] number among the listed arcs; −1: not listed, score 0

    BoundaryArcs bounds;

  private:
    void link_boundaries();

    std::vector<std::int32_t> place_;  // [L] scratch: node of a label at the position before, −1 elsewhere
};

}  // namespace crfkit
