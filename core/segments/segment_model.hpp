// Segments: which labels, lengths and weights the segments of a semi-Markov chain have.
//
// A segment (s, e, c) of type c covers positions s … e − 1. Its label sequence is that of a scheme,
//
//   first inside inside … last,     or `single` where it has one position
//
// and label sequences that keep the scheme are segmentations, one to one. Its score is
//
//   Σ_t (features of position t and its label) + transition(type before, c) + length(c, e − s)
//     + Σ (features of the segment and c)
//
// Lengths 1 … K_c have weights of their own. Where a type has no limit, each position beyond K_c adds the
// weight `longer` of the type: length(c, k) = (k − K_c) · longer(c). Where its limit is above every length of
// the training data, lengths from there up to the limit exist without a weight: length(c, k) = 0.
//
// Letters: C types, K lengths, W own weights, which lie behind those of the layout. Transitions between types
// are those of the layout between their labels `transition`.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/design.hpp"
#include "data/layout.hpp"
#include "lattice/function_parts.hpp"

namespace crfkit {

// The features that segments have, by the position they end at. Cell i lists the features of the segment of
// lengths[i] positions that ends with position t, for cell_ptr[t] ≤ i < cell_ptr[t + 1], lengths ascending.
struct SegmentFeatures {
    bool empty() const { return cell_ptr.empty(); }
    // Throws std::invalid_argument unless the arrays fit together.
    void check(std::int64_t n_positions, std::int64_t n_features) const;

    std::vector<std::int64_t> cell_ptr;  // [T + 1]; empty: no segment has features
    std::vector<std::int32_t> lengths;   // [cells]
    std::vector<std::int64_t> ptr;       // [cells + 1]
    std::vector<std::int32_t> ids;
    std::vector<double> values;
};

struct SegmentModel {
    std::int32_t n_types() const { return static_cast<std::int32_t>(first.size()); }
    std::int64_t n_features() const { return static_cast<std::int64_t>(pair_ptr.size()) - 1; }
    // Own weights, W.
    std::int64_t n_own() const { return pairs_begin + static_cast<std::int64_t>(pair_types.size()); }
    // The own weight of a length, or of a position beyond K_c (k = K_c + 1) where there is no limit; −1:
    // none.
    std::int64_t length_weight(std::int32_t c, std::int64_t k) const {
        return k > n_own_lengths[c] ? -1 : length_begin[c] + k - 1;
    }
    // Whether a segment of type c may follow one of type `before`; −1: the start, or the end, of the
    // sequence.
    bool follows(std::int32_t before, std::int32_t c) const {
        const std::int64_t C = n_types();
        return exists[static_cast<std::size_t>((before < 0 ? C : before) * (C + 1) + (c < 0 ? C : c))] != 0;
    }
    // The own weight of feature f of a segment of type c; −1: none.
    std::int64_t feature_weight(std::int32_t f, std::int32_t c) const;
    // Calls function(type, own weight, value) for all weights of the features of a cell.
    template <class Function>
    void each_pair(const SegmentFeatures& features, std::int64_t cell, const Function& function) const {
        for (std::int64_t j = features.ptr[cell]; j < features.ptr[cell + 1]; ++j)
            for (std::int64_t p = pair_ptr[features.ids[j]]; p < pair_ptr[features.ids[j] + 1]; ++p)
                if (features.lengths[cell] <= n_lengths[pair_types[p]])
                    function(pair_types[p], pairs_begin + p, features.values[j]);
    }
    // Throws std::invalid_argument unless the arrays fit together, with L labels.
    void check(std::int32_t n_labels) const;

    std::vector<std::int32_t> first, inside, last, single;  // [C] labels; −1: no segment of the type has it
    std::vector<std::int32_t> transition;                   // [C] whose transitions are those of the type
    std::vector<std::int64_t> n_lengths;                    // [C] K_c ≥ 1
    std::vector<std::uint8_t> unlimited;                    // [C] whether longer ones exist
    std::vector<std::int64_t> length_begin;                 // [C] the own weight of length 1
    std::vector<std::int64_t> n_own_lengths;                // [C] own weights of lengths, `longer` included
    std::vector<std::uint8_t> exists;       // [C + 1, C + 1] which types follow which; C: ends
    bool repeats = true;                    // whether a label tells where a segment begins
    std::int64_t pairs_begin = 0;           // the own weight of pair 0
    std::vector<std::int64_t> pair_ptr{0};  // [F + 1] feature f has weights for the types
    std::vector<std::int32_t> pair_types;   //   pair_types[pair_ptr[f]..], ascending
};

struct SegmentData {
    // Where the own weights of segments begin.
    std::int64_t own_begin() const { return layout->n_weights() + n_outputs; }

    std::shared_ptr<const Layout> layout;
    std::shared_ptr<const Design> design;
    SegmentModel model;
    SegmentFeatures features;
    std::shared_ptr<const FunctionSlices> functions =
        nullptr;                 // of labels; null: the design has the features
    std::int64_t n_outputs = 0;  // weights of functions, behind the layout
    bool of_pairs = false;       // some functions are of two labels
};

}  // namespace crfkit
