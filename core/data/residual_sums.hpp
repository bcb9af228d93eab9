// Second half of an evaluation: Φᵀ residuals, feature by feature.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "base/sum_grid.hpp"
#include "data/blocks.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "data/scorer.hpp"

namespace crfkit {

// What the residuals of one block sum up to, before it is added to the weights.
struct BlockSums {
    Buffer<double> rows;     // [long lists of rows, S]
    Buffer<double> entries;  // [lists of entries]
    Buffer<double> dense;    // [columns of all dense blocks, S]
    Buffer<double> triples;  // for each list of arcs the weights of its feature, one after the other
};

template <class Real>
class ResidualSums {
  public:
    ResidualSums(const Layout& layout, const Design& design, const std::vector<Block>& blocks,
                 const WeightTables<Real>& tables);

    // Begins a new sum in out[D]. What `add` adds to it is rounded to the grid, but for dense blocks.
    void clear(double* out, SumGrid grid, int n_threads);
    // Allocates the sums of block i.
    void open(std::size_t i, BlockSums& sums) const;
    // Sums up the residuals of block i, for one of kRanges ranges of features and weights; those of short
    // lists of rows are left to `merge`.
    void sum(std::size_t i, std::int64_t range, const Real* residuals, const Real* own_residuals,
             BlockSums& sums) const;
    // Adds one range of what block i sums up to.
    void merge(std::size_t i, const BlockSums& sums, std::int64_t range, const Real* residuals, double* out);
    // sum and merge at once, with the same bits: the sums of features are not stored in between.
    void add(std::size_t i, std::int64_t range, const Real* residuals, const Real* own_residuals,
             BlockSums& sums, double* out);
    // Takes over the memory of another of the same layout.
    void take(ResidualSums& other) { row_sums_ = std::exchange(other.row_sums_, {}); }
    // Once, after all blocks: adds the sums of groups to those of their features, and moves those of rows to
    // out.
    void write_rows(double* out, int n_threads);

  private:
    PositionLists<Real> rows_of(std::size_t i) const;
    PositionLists<Real> entries_of(std::size_t i) const;
    // Dense blocks and features of arcs.
    void sum_others(std::size_t i, std::int64_t range, const Real* residuals, const Real* own_residuals,
                    BlockSums& sums) const;
    void merge_others(std::size_t i, const BlockSums& sums, std::int64_t range, double* out);
    // Σ over the positions of a list of arcs: `triples` gets the sums of its feature's weights.
    void sum_arcs(std::size_t i, std::int64_t list, const Real* own_residuals, double* triples) const;
    std::int64_t n_triples(std::int32_t feature) const {
        return layout_.arc_ptr[feature + 1] - layout_.arc_ptr[feature];
    }

    const Layout& layout_;
    const FeatureGroups* const groups_;
    const std::vector<Block>& blocks_;
    const Kernels<Real>& kernels_;
    const std::int32_t stride_;  // S
    SumGrid grid_;
    std::vector<Typed<Real>> row_values_, entry_values_, arc_values_, dense_;
    std::vector<std::vector<std::int64_t>> triple_ptr_;  // [blocks][lists of arcs + 1]
    Buffer<double> row_sums_;  // [n_rows, S] for the features that are scored as a whole, and for groups
};

extern template class ResidualSums<float>;
extern template class ResidualSums<double>;

}  // namespace crfkit
