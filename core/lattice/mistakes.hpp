// Mistakes found on lattices of the candidates of each position.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lattice/scored_lattice.hpp"
#include "training/chain_mistakes.hpp"

namespace crfkit {

// For designs with `as_lattices` or `as_batches`.
class LatticeMistakes : public ChainMistakes {
  public:
    LatticeMistakes(const Layout& layout, const Design& design, const Annotation& gold, const ArcModel& arcs,
                    const double* w, int n_threads);

    void read_weights() override;
    void read_changes(const Difference& difference) override;

  private:
    void predict(std::int64_t n) override;
    void correct(std::int64_t n) override;
    void add_position(std::int64_t position, std::int32_t label, double sign,
                      Difference& difference) override;
    void label(std::vector<std::int32_t>& labels);
    void read_ends();

    ArcTables tables_;                       // start and end are up to date, arcs where arc_version_ says so
    std::int64_t version_ = 0;               // of the weights: changes with every mistake
    std::vector<std::int64_t> arc_version_;  // [A]
    std::unique_ptr<LatticeSource> source_;
    ScoredLattice scored_;
};

}  // namespace crfkit
