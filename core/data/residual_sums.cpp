#include "data/residual_sums.hpp"

#include <algorithm>

#include "base/threads.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kRowsAhead = 8, kEntriesAhead = 32;  // lists whose sums are fetched meanwhile
constexpr std::int64_t kColumns = 16;  // of a dense block that are summed up in one pass over its rows

}  // namespace

template <class Real>
ResidualSums<Real>::ResidualSums(const Layout& layout, const Design& design, const std::vector<Block>& blocks,
                                 const WeightTables<Real>& tables)
    : layout_(layout),
      groups_(tables.groups),
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
    for (const Block& block : blocks) {
        std::vector<std::int64_t>& ptr = triple_ptr_.emplace_back(1, 0);
        for (const std::int32_t f : block.arcs.ids) ptr.push_back(ptr.back() + n_triples(f));
    }
}

template <class Real>
void ResidualSums<Real>::clear(double* out, SumGrid grid, int n_threads) {
    grid_ = grid;
    fill_all(out, layout_.n_weights(), 0.0, n_threads);
    row_sums_.resize((groups_ ? groups_->n_rows() : std::ssize(layout_.row_features)) * stride_);
    fill_all(row_sums_.data(), row_sums_.size(), 0.0, n_threads);
}

template <class Real>
void ResidualSums<Real>::open(std::size_t i, BlockSums& sums) const {
    std::int64_t n_columns = 0;
    for (const std::int64_t columns : layout_.dense_columns) n_columns += columns;
    sums.dense.assign(n_columns * stride_, 0.0);
    sums.triples.resize(triple_ptr_[i].back());
}

template <class Real>
PositionLists<Real> ResidualSums<Real>::rows_of(std::size_t i) const {
    return {blocks_[i].rows.ptr.data(), blocks_[i].rows.positions.data(), row_values_[i].data()};
}

template <class Real>
PositionLists<Real> ResidualSums<Real>::entries_of(std::size_t i) const {
    return {blocks_[i].entries.ptr.data(), blocks_[i].entries.positions.data(), entry_values_[i].data()};
}

template <class Real>
void ResidualSums<Real>::sum(std::size_t i, std::int64_t range, const Real* residuals,
                             const Real* own_residuals, BlockSums& sums) const {
    const Block& block = blocks_[i];
    sums.rows.resize(block.n_long_rows.back() * stride_);  // not before they are needed: see `add`
    sums.entries.resize(block.entries.n());
    const std::int64_t entry = block.entry_ranges[range];
    kernels_.sum_rows(rows_of(i), block.first_long_row[range], block.row_ranges[range + 1], nullptr,
                      residuals, stride_, SumGrid(), sums.rows.data() + block.n_long_rows[range] * stride_);
    kernels_.sum_entries(entries_of(i), entry, block.entry_ranges[range + 1], nullptr,
                         block.entry_labels.data(), residuals, stride_, SumGrid(),
                         sums.entries.data() + entry);
    sum_others(i, range, residuals, own_residuals, sums);
}

template <class Real>
void ResidualSums<Real>::merge(std::size_t i, const BlockSums& sums, std::int64_t range,
                               const Real* residuals, double* out) {
    const Block& block = blocks_[i];
    const std::int64_t first_long = block.first_long_row[range];
    kernels_.sum_rows(rows_of(i), block.row_ranges[range], first_long, block.rows.ids.data(), residuals,
                      stride_, SumGrid(), row_sums_.data());
    const double* from = sums.rows.data() + block.n_long_rows[range] * stride_;
    const std::int64_t last = block.row_ranges[range + 1];
    const auto row = [&](std::int64_t k) {
        return row_sums_.data() + static_cast<std::int64_t>(block.rows.ids[k]) * stride_;
    };
    for (std::int64_t k = first_long; k < last; ++k, from += stride_) {
        for (std::int32_t b = 0; b < stride_; b += 8)
            __builtin_prefetch(row(std::min(k + kRowsAhead, last - 1)) + b);
        double* to = row(k);
        for (std::int32_t b = 0; b < stride_; ++b) to[b] += from[b];
    }
    const std::int64_t last_entry = block.entry_ranges[range + 1];
    for (std::int64_t k = block.entry_ranges[range]; k < last_entry; ++k) {
        __builtin_prefetch(out + block.entries.ids[std::min(k + kEntriesAhead, last_entry - 1)]);
        out[block.entries.ids[k]] += sums.entries[k];
    }
    merge_others(i, sums, range, out);
}

template <class Real>
void ResidualSums<Real>::add(std::size_t i, std::int64_t range, const Real* residuals,
                             const Real* own_residuals, BlockSums& sums, double* out) {
    const Block& block = blocks_[i];
    kernels_.sum_rows(rows_of(i), block.row_ranges[range], block.row_ranges[range + 1], block.rows.ids.data(),
                      residuals, stride_, grid_, row_sums_.data());
    kernels_.sum_entries(entries_of(i), block.entry_ranges[range], block.entry_ranges[range + 1],
                         block.entries.ids.data(), block.entry_labels.data(), residuals, stride_, grid_, out);
    sum_others(i, range, residuals, own_residuals, sums);
    merge_others(i, sums, range, out);
}

template <class Real>
void ResidualSums<Real>::sum_others(std::size_t i, std::int64_t range, const Real* residuals,
                                    const Real* own_residuals, BlockSums& sums) const {
    const Block& block = blocks_[i];
    double* dense = sums.dense.data();
    for (std::size_t k = 0; k < dense_.size(); ++k) {
        const std::int64_t columns = layout_.dense_columns[k];
        const Part part(columns, range, kColumns);
        if (part.begin < part.end)
            kernels_.sum_dense(dense_[k].data() + block.first_position * columns,
                               block.last_position - block.first_position, columns, part.begin, part.end,
                               residuals, stride_, dense);
        dense += columns * stride_;
    }
    for (std::int64_t k = block.arc_ranges[range]; k < block.arc_ranges[range + 1]; ++k)
        sum_arcs(i, k, own_residuals, sums.triples.data() + triple_ptr_[i][k]);
}

template <class Real>
void ResidualSums<Real>::merge_others(std::size_t i, const BlockSums& sums, std::int64_t range, double* out) {
    const Block& block = blocks_[i];
    for (std::int64_t k = block.arc_ranges[range]; k < block.arc_ranges[range + 1]; ++k) {
        const std::int32_t f = block.arcs.ids[k];
        double* to = out + layout_.triples_begin() + layout_.arc_ptr[f];
        const double* from = sums.triples.data() + triple_ptr_[i][k];
        for (std::int64_t p = 0; p < n_triples(f); ++p) to[p] += grid_.round(from[p]);
    }
    const double* dense = sums.dense.data();
    for (std::size_t k = 0; k < dense_.size(); ++k) {
        const std::int64_t columns = layout_.dense_columns[k], L = layout_.n_labels;
        double* to = out + layout_.dense_begin(k);
        const Part part(columns, range, kColumns);
        for (std::int64_t c = part.begin; c < part.end; ++c)
            for (std::int64_t b = 0; b < L; ++b) to[c * L + b] += dense[c * stride_ + b];
        dense += columns * stride_;
    }
}

template <class Real>
void ResidualSums<Real>::sum_arcs(std::size_t i, std::int64_t list, const Real* own_residuals,
                                  double* triples) const {
    const Block& block = blocks_[i];
    const std::int32_t S = stride_, L = layout_.n_labels;
    const PositionLists<Real> lists{block.arcs.ptr.data(), block.arcs.positions.data(),
                                    arc_values_[i].data()};
    std::vector<double> sums(static_cast<std::size_t>(L) * S);
    kernels_.sum_rows(lists, list, list + 1, nullptr, own_residuals, L * S, SumGrid(), sums.data());
    const std::int64_t f = block.arcs.ids[list];
    for (std::int64_t p = layout_.arc_ptr[f]; p < layout_.arc_ptr[f + 1]; ++p)
        *triples++ = sums[layout_.arc_triples[p] / L * S + layout_.arc_triples[p] % L];
}

template <class Real>
void ResidualSums<Real>::write_rows(double* out, int n_threads) {
    if (groups_) groups_->share_out(stride_, row_sums_.data(), out, n_threads);
    constexpr std::int64_t per_task = 256;
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
