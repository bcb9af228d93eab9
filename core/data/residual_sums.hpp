// Second half of an evaluation: Φᵀ residuals, feature by feature.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "data/blocks.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "data/scorer.hpp"

namespace crfkit {

template <class Real>
class ResidualSums {
  public:
    ResidualSums(const Layout& layout, const Design& design, const std::vector<Block>& blocks,
                 const WeightTables<Real>& tables);

    // Begins a new sum in out[D].
    void clear(double* out, int n_threads);
    // Adds what the residuals of block i give to the weights of one of its tasks.
    void add(std::size_t i, const GatherTask& task, const Real* residuals, const Real* own_residuals,
             double* out);
    // Moves the sums of whole rows to out.
    void write_rows(double* out, int n_threads) const;

  private:
    void add_dense(const Block& block, const GatherTask& task, const Real* residuals, double* out) const;
    void add_arcs(std::size_t i, const GatherTask& task, const Real* own_residuals, double* out) const;

    const Layout& layout_;
    const std::vector<Block>& blocks_;
    const Kernels<Real>& kernels_;
    const std::int32_t stride_;  // S
    std::vector<Typed<Real>> row_values_, entry_values_, arc_values_, dense_;
    Buffer<double> row_sums_;  // [n_rows, S] for the features that are scored as a whole
};

extern template class ResidualSums<float>;
extern template class ResidualSums<double>;

}  // namespace crfkit
