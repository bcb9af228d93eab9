#include "data/residual_sums.hpp"

#include <algorithm>

#include "base/threads.hpp"

namespace crfkit {

template <class Real>
ResidualSums<Real>::ResidualSums(const Layout& layout, const Design& design, const std::vector<Block>& blocks,
                                 const WeightTables<Real>& tables)
    : layout_(layout),
      blocks_(blocks),
      kernels_(tables.kernels),
      stride_(tables.stride),
      row_values_(blocks.size()),
      entry_values_(blocks.size()),
      arc_values_(blocks.size()),
      dense_(design.dense.size()) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        row_values_[i].of(blocks[i].rows.values);
        entry_values_[i].of(blocks[i].entries.values);
        arc_values_[i].of(blocks[i].arcs.values);
    }
    for (std::size_t k = 0; k < dense_.size(); ++k) dense_[k].of(design.dense[k]);
}

template <class Real>
void ResidualSums<Real>::clear(double* out, int n_threads) {
    fill_all(out, layout_.n_weights(), 0.0, n_threads);
    row_sums_.resize(static_cast<std::int64_t>(layout_.row_features.size()) * stride_);
    fill_all(row_sums_.data(), row_sums_.size(), 0.0, n_threads);
}

template <class Real>
void ResidualSums<Real>::add(std::size_t i, const GatherTask& task, const Real* residuals,
                             const Real* own_residuals, double* out) {
    const Block& block = blocks_[i];
    if (task.kind == Gather::rows) {
        const PositionLists<Real> lists{block.rows.ptr.data(), block.rows.positions.data(),
                                        row_values_[i].data()};
        kernels_.sum_rows(lists, task.first, task.last, block.rows.ids.data(), residuals, stride_,
                          row_sums_.data());
    } else if (task.kind == Gather::entries) {
        const PositionLists<Real> lists{block.entries.ptr.data(), block.entries.positions.data(),
                                        entry_values_[i].data()};
        std::vector<double> sums(static_cast<std::size_t>(task.last - task.first));
        kernels_.sum_entries(lists, task.first, task.last, block.entry_labels.data(), residuals, stride_,
                             sums.data());
        for (std::int64_t k = task.first; k < task.last; ++k)
            out[block.entries.ids[k]] += sums[k - task.first];
    } else if (task.kind == Gather::dense) {
        add_dense(block, task, residuals, out);
    } else {
        add_arcs(i, task, own_residuals, out);
    }
}

template <class Real>
void ResidualSums<Real>::add_dense(const Block& block, const GatherTask& task, const Real* residuals,
                                   double* out) const {
    const std::int64_t columns = layout_.dense_columns[task.index], L = layout_.n_labels;
    std::vector<double> sums(static_cast<std::size_t>(columns * stride_), 0.0);
    kernels_.sum_dense(dense_[task.index].data() + block.first_position * columns,
                       block.last_position - block.first_position, columns, task.first, task.last, residuals,
                       stride_, sums.data());
    double* block_out = out + layout_.dense_begin(task.index);
    for (std::int64_t c = task.first; c < task.last; ++c)
        for (std::int64_t b = 0; b < L; ++b) block_out[c * L + b] += sums[c * stride_ + b];
}

template <class Real>
void ResidualSums<Real>::add_arcs(std::size_t i, const GatherTask& task, const Real* own_residuals,
                                  double* out) const {
    const Block& block = blocks_[i];
    const std::int32_t S = stride_, L = layout_.n_labels;
    const PositionLists<Real> lists{block.arcs.ptr.data(), block.arcs.positions.data(),
                                    arc_values_[i].data()};
    const std::vector<std::int32_t> here(static_cast<std::size_t>(block.arcs.n()), 0);
    std::vector<double> sums;
    double* triples = out + layout_.triples_begin();
    for (std::int64_t k = task.first; k < task.last; ++k) {
        sums.assign(static_cast<std::size_t>(L) * S, 0.0);
        kernels_.sum_rows(lists, k, k + 1, here.data(), own_residuals, L * S, sums.data());
        const std::int64_t f = block.arcs.ids[k];
        for (std::int64_t p = layout_.arc_ptr[f]; p < layout_.arc_ptr[f + 1]; ++p)
            triples[p] += sums[layout_.arc_triples[p] / L * S + layout_.arc_triples[p] % L];
    }
}

template <class Real>
void ResidualSums<Real>::write_rows(double* out, int n_threads) const {
    constexpr std::int64_t per_task = 1024;
    const auto n_rows = static_cast<std::int64_t>(layout_.row_features.size());
    parallel_for((n_rows + per_task - 1) / per_task, n_threads, [&](std::int64_t task, int) {
        for (std::int64_t r = task * per_task; r < std::min(n_rows, (task + 1) * per_task); ++r) {
            const std::int64_t f = layout_.row_features[r];
            for (std::int64_t p = layout_.pair_ptr[f]; p < layout_.pair_ptr[f + 1]; ++p)
                out[p] = row_sums_[r * stride_ + layout_.pair_labels[p]];
        }
    });
}

template class ResidualSums<float>;
template class ResidualSums<double>;

}  // namespace crfkit
