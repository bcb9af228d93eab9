// Φ w for one sequence: the scores of its states and arcs.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "base/buffer.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "data/weight_tables.hpp"
#include "kernels/kernels.hpp"

namespace crfkit {

// The numbers in the kernel's precision: the buffer itself for double, a copy for float.
template <class Real>
class Typed {
  public:
    void of(const Buffer<double>& numbers) {
        if constexpr (std::is_same_v<Real, double>) {
            data_ = numbers.size() ? numbers.data() : nullptr;
        } else {
            copy_.resize(numbers.size());
            for (std::int64_t i = 0; i < numbers.size(); ++i) copy_[i] = static_cast<Real>(numbers[i]);
            data_ = numbers.size() ? copy_.data() : nullptr;
        }
    }
    const Real* data() const { return data_; }

  private:
    const Real* data_ = nullptr;
    Buffer<Real> copy_;
};

template <class Real>
class Scorer {
  public:
    Scorer(const Layout& layout, const Design& design, const WeightTables<Real>& tables)
        : layout_(layout), design_(design), tables_(tables), dense_(design.dense.size()) {
        feature_values_.of(design.features.values);
        row_values_.of(features().rows.values);
        entry_values_.of(features().entries.values);
        arc_values_.of(design.arcs.values);
        for (std::size_t k = 0; k < dense_.size(); ++k) dense_[k].of(design.dense[k]);
    }

    const WeightTables<Real>& tables() const { return tables_; }

    // states [T, S] of sequence n, start and end scores folded in, −inf where a label is not allowed.
    void score(std::int64_t n, Real* states) const {
        const std::int64_t first = design_.sequence_ptr[n], n_positions = design_.sequence_ptr[n + 1] - first;
        if (n_positions == 0) return;
        const std::int32_t stride = tables_.stride;
        score_features(first, n_positions, states);
        for (std::size_t k = 0; k < dense_.size(); ++k)
            tables_.kernels.score_dense(dense_[k].data() + first * layout_.dense_columns[k], n_positions,
                                        layout_.dense_columns[k], tables_.dense[k].data(), stride, states);
        Real* last = states + (n_positions - 1) * stride;
        for (std::int32_t b = 0; b < layout_.n_labels; ++b) {
            states[b] += tables_.start[b];
            last[b] += tables_.end[b];
        }
    }

    // Whether a position of the data set has arcs of its own.
    bool has_own_arcs(std::int64_t position) const {
        return design_.arcs.ptr.size() > 0 && design_.arcs.ptr[position + 1] > design_.arcs.ptr[position];
    }

    // The arc scores [L, S] into a position that has arcs of its own.
    void score_arcs(std::int64_t position, Real* table) const {
        std::copy(tables_.arcs.begin(), tables_.arcs.end(), table);
        for (std::int64_t i = design_.arcs.ptr[position]; i < design_.arcs.ptr[position + 1]; ++i) {
            const std::int64_t f = design_.arcs.ids[i];
            const Real value = arc_values_.data() ? arc_values_.data()[i] : Real(1);
            for (std::int64_t p = layout_.arc_ptr[f]; p < layout_.arc_ptr[f + 1]; ++p) {
                const std::int32_t pair = layout_.arc_triples[p];
                const std::int64_t a = pair / layout_.n_labels, b = pair % layout_.n_labels;
                table[a * tables_.stride + b] += value * tables_.triples[p];
            }
        }
    }

  private:
    const SplitFeatures& features() const {
        return tables_.groups ? tables_.groups->features() : design_.split;
    }

    void score_features(std::int64_t first, std::int64_t n_positions, Real* states) const {
        const Kernels<Real>& k = tables_.kernels;
        if (design_.is_split()) {
            const auto& [rows, entries, entry_labels] = features();
            const PositionFeatures<Real> active{
                rows.ptr.data() + first,    rows.ids.data(),     row_values_.data(),
                entries.ptr.data() + first, entries.ids.data(),  entry_labels.data(),
                entry_values_.data(),       tables_.rows.data(), tables_.weights.data()};
            k.score_positions(active, n_positions, tables_.stride, tables_.base.data(), states);
        } else {
            if (tables_.features.size() != layout_.n_features())
                throw std::logic_error("the weights of features were not listed");
            const ListedFeatures<Real> features{design_.features.ptr.data() + first,
                                                design_.features.ids.data(),
                                                feature_values_.data(),
                                                tables_.features.data(),
                                                layout_.pair_labels.data(),
                                                tables_.rows.data(),
                                                tables_.weights.data()};
            k.score_listed(features, n_positions, tables_.stride, tables_.base.data(), states);
        }
    }

    const Layout& layout_;
    const Design& design_;
    const WeightTables<Real>& tables_;
    Typed<Real> feature_values_, row_values_, entry_values_, arc_values_;
    std::vector<Typed<Real>> dense_;
};

// Closes the labels that are not allowed at the positions of a sequence: rows [T, S] of scores.
template <class Real>
void close_labels(const AllowedLabels& allowed, std::int64_t first_position, std::int64_t n_positions,
                  std::int32_t n_labels, std::int32_t stride, Real* states) {
    if (allowed.empty()) return;
    for (std::int64_t t = 0; t < n_positions; ++t)
        allowed.forbidden(first_position + t, n_labels,
                          [&](std::int32_t b) { states[t * stride + b] = WeightTables<Real>::kNever; });
}

}  // namespace crfkit
