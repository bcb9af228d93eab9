// The weights of a trained chain, ready to score data sets.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "answers/scored_sequences.hpp"
#include "base/forks.hpp"
#include "chain/workspace.hpp"
#include "data/arc_model.hpp"
#include "data/weight_tables.hpp"

namespace crfkit {

class ChainPotentials {
  public:
    // local: normalised at each position instead of over whole sequences (a maximum entropy Markov model).
    ChainPotentials(std::shared_ptr<const Layout> layout, const double* w, bool local = false);
    ~ChainPotentials();

    const Layout& layout() const { return *layout_; }

    // The data set with its scores: by whole rows of labels, or as lattices where the design says so. Design
    // and weights must outlive it. Throws for a design of another layout, and for sequences that have no
    // label sequence.
    std::unique_ptr<ScoredSequences> score(const Design& design, int n_threads) const;
    // The scores of the parts of sequence n, whatever its allowed labels are: emissions [T, L], start and end
    // included, and transitions: [T − 1, L, L] with by_position(), else [L, L].
    void scores(const Design& design, std::int64_t n, double* emissions, double* transitions) const;
    bool by_position(const Design& design) const { return local_ || design.arcs.ptr.size() > 0; }

  private:
    // What depends on the weights alone, made when first needed: for whole rows of labels, and for lattices.
    struct Rows;
    struct Arcs;
    const Rows& rows() const;
    const Arcs& arcs() const;
    class RowReader;
    class ScoredRows;

    std::shared_ptr<const Layout> layout_;
    std::vector<double> w_;
    bool local_;
    mutable Once rows_once_, arcs_once_;
    mutable std::unique_ptr<const Rows> rows_;
    mutable std::unique_ptr<const Arcs> arcs_;
};

}  // namespace crfkit
