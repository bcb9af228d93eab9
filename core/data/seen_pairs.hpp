// Which features were seen with which labels, how often each feature was seen, and lists without the rare
// ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/feature_writer.hpp"

namespace crfkit {

// The features of T positions: position i has ids[position_ptr[i] : position_ptr[i + 1]], each id in 0..F−1.
struct FeatureSpans {
    std::span<const std::int64_t> position_ptr;  // [T + 1]
    std::span<const std::int32_t> ids;           // [nnz]
    std::int64_t n_features;                     // F

    std::int64_t n_positions() const { return static_cast<std::int64_t>(position_ptr.size()) - 1; }
    // Throws std::invalid_argument unless the offsets rise from 0 to nnz and every id is below F.
    void check() const;
};

// What is known of the right labels: one label, a set of possible labels, or nothing.
struct LabelSpans {
    std::span<const std::int32_t> labels;   // [T] the label, −1 where not exactly one is known
    std::span<const std::int64_t> set_ptr;  // [T + 1] or empty; where labels is −1, position i may have
    std::span<const std::int32_t>
        set_labels;         //     set_labels[set_ptr[i] : set_ptr[i + 1]]; none listed: nothing is known
    std::int64_t n_labels;  // L

    // Throws std::invalid_argument unless there are T entries and every label is below L.
    void check(std::int64_t n_positions) const;
    // The labels that count as seen at a position: none where nothing is known.
    std::span<const std::int32_t> at(std::int64_t position) const;
};

// Feature f was seen with labels[feature_ptr[f] : feature_ptr[f + 1]], rising.
struct SeenPairs {
    std::vector<std::int64_t> feature_ptr;  // [F + 1]
    std::vector<std::int32_t> labels;       // [P]
};

// Time O(T + nnz + F + L), memory beyond the result O(T + F + L).
SeenPairs seen_pairs(const FeatureSpans& features, const LabelSpans& labels);

// The same for features of arcs: in place of a label stands before·L + after, for the arc that enters the
// position. The first position of a sequence has no such arc. L is at most 46340, so that a pair fits.
SeenPairs seen_arc_pairs(std::span<const std::int64_t> sequence_ptr, const FeatureSpans& features,
                         const LabelSpans& labels);

// Number of positions at which each feature stands, [F]; a feature that stands twice at a position counts
// once there.
std::vector<std::int64_t> position_counts(const FeatureSpans& features);

// For each feature the first one that equals it: active at the same positions with the same values, and with
// the same labels (feature_ptr and labels as above). Two keys of 64 bits tell features apart.
std::vector<std::int32_t> first_equals(const FeatureSpans& features, std::span<const double> values,
                                       std::span<const std::int64_t> feature_ptr,
                                       std::span<const std::int32_t> labels);

// The list with ids renamed by remap [F] (−1 = dropped); `values` is empty or has one number for each id.
FeatureArrays renamed(std::span<const std::int64_t> position_ptr, std::span<const std::int32_t> ids,
                      std::span<const double> values, std::span<const std::int32_t> remap);

}  // namespace crfkit
