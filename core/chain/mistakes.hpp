// Mistakes found by whole rows of labels. The rows that the kernels read are kept up to date weight by
// weight.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "chain/workspace.hpp"
#include "data/scorer.hpp"
#include "data/weight_tables.hpp"
#include "training/chain_mistakes.hpp"

namespace crfkit {

// For designs that are split into rows and entries. Real: the precision of the scores.
template <class Real>
class RowMistakes : public ChainMistakes {
  public:
    RowMistakes(const Layout& layout, const Design& design, const Annotation& gold, const ArcModel& arcs,
                const double* w);

    void read_weights() override;
    void expect(std::int64_t n) const override;
    void read_changes(const Difference& difference) override;

  private:
    void predict(std::int64_t n) override;
    void correct(std::int64_t n) override;
    void add_position(std::int64_t position, std::int32_t label, double sign,
                      Difference& difference) override;
    void read_arc(std::int32_t before, std::int32_t after);
    void label(std::int64_t n_positions, std::vector<std::int32_t>& labels);

    // A weight, and where the tables have it.
    struct Cell {
        std::int64_t weight;
        Real* place;
    };
    WeightTables<Real> tables_;
    Scorer<Real> scorer_;
    Buffer<std::int32_t> pairs_;  // [n_rows, S] the pair of each cell of the rows, −1: none
    Workspace<Real> work_;
    std::vector<const Real*> own_;  // [T] arc scores into each position that has its own; empty: none has
    std::vector<Cell> cells_;       // of the positions of the mistake found last
};

}  // namespace crfkit
