// Where each weight lies in the weight vector w[D], and what it scores.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/bigrams.hpp"

namespace crfkit {

// What labels are made of, so that labels share weights: label b has the facets
// ids[ptr[b]..ptr[b+1]−1], ascending, numbered from L + 1 on. Both vectors are empty when there are none.
struct Facets {
    std::vector<std::int64_t> ptr;  // [L + 1]
    std::vector<std::int32_t> ids;
    std::int32_t n = 0;  // number of different facets

    bool operator==(const Facets&) const = default;
    bool empty() const { return ptr.empty(); }
};

// The weights of a chain model, in this order:
//   state pairs     one per (feature, label) pair: pair p scores label pair_labels[p]; feature f has pairs
//                   pair_ptr[f]..pair_ptr[f+1]−1
//   dense blocks    block k: n_columns × L, row by row
//   arcs            one per (before, after) pair; before = L means the start of the sequence, after = L its
//   end arc triples     one per (arc feature, before, after): feature f has triples
//   arc_ptr[f]..arc_ptr[f+1]−1, each
//                   given as before · L + after
// With facets, a state pair scores all labels that have facet pair_labels[p], and an arc may link facets: it
// then scores all pairs of labels that have them.
class Layout {
  public:
    // throws std::invalid_argument if the arrays do not fit together.
    Layout(std::int32_t n_labels, std::span<const std::int64_t> pair_ptr,
           std::span<const std::int32_t> pair_labels, std::span<const std::int64_t> dense_columns,
           std::span<const std::int32_t> arc_before, std::span<const std::int32_t> arc_after,
           std::span<const std::int64_t> arc_ptr, std::span<const std::int32_t> arc_triples,
           std::optional<Bigrams> bigrams = std::nullopt, Facets facets = {});

    bool operator==(const Layout&) const = default;

    std::int32_t n_labels;  // L
    std::vector<std::int64_t> pair_ptr;
    std::vector<std::int32_t> pair_labels;
    std::vector<std::int64_t> dense_columns;
    std::vector<std::int32_t> arc_before, arc_after;
    std::vector<std::int64_t> arc_ptr;
    std::vector<std::int32_t> arc_triples;
    std::optional<Bigrams> bigrams;  // which arcs exist; nothing: all
    Facets facets;

    // What pairs and arcs may name: labels, start or end (L), facets. Pairs name facets alone, or labels
    // alone.
    std::int32_t n_outcomes() const { return n_labels + 1 + facets.n; }

    std::int64_t n_features() const { return static_cast<std::int64_t>(pair_ptr.size()) - 1; }
    std::int64_t n_arc_features() const { return static_cast<std::int64_t>(arc_ptr.size()) - 1; }
    std::int64_t dense_begin(std::size_t block) const;
    std::int64_t arcs_begin() const { return dense_begin(dense_columns.size()); }
    std::int64_t triples_begin() const { return arcs_begin() + static_cast<std::int64_t>(arc_before.size()); }
    std::int64_t n_weights() const { return triples_begin() + static_cast<std::int64_t>(arc_triples.size()); }

    // A feature with weights for many labels is scored as a whole padded row, one with few as single weights:
    // a row costs about L/16 vector operations, a single weight one scalar operation.
    std::vector<std::int32_t> row_of;        // [F] row of the feature, −1: single weights
    std::vector<std::int32_t> row_features;  // [n_rows] and back
};

}  // namespace crfkit
