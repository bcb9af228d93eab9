// The weights of segments as the kernels read them (kernels/segment_kernels.hpp), and what counts of segments
// give them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "data/arc_model.hpp"
#include "kernels/kernels.hpp"
#include "segments/segment_model.hpp"

namespace crfkit {

// Expected numbers of what segments have, in rows of types.
struct SegmentCounts {
    Buffer<double> transitions;                        // [Q, Q], the first C rows
    Buffer<double> start, end, entering, beyond;       // [Q]
    Buffer<double> lengths;                            // [K, Q]
    std::vector<std::pair<std::int64_t, double>> own;  // of segment features: (own weight, number)

    void clear(std::int64_t n_lengths, std::int64_t stride);
    // The first n_lengths rows of lengths alone.
    void add(const SegmentCounts& other, double weight, std::int64_t n_lengths);
};

// Why scaled messages are exact: a product that underflows is worth at most the smallest number times what
// follows it. Messages that follow are compared with kMostAfter, those of going segments through the ones
// that begin at the same position: they differ by weights of lengths and of segment features, which lie
// within exp(±kFarLengths) each. So a loss is below 1e−308 · 1e150 · e^(4 · 50) < 1e−70 of Z.
inline constexpr double kMostAfter = 1e150, kFarLengths = 50, kFarTransitions = 200;

// The weights of segments, in exp space and as scores.
class SegmentWeights {
  public:
    SegmentWeights(const SegmentData& data, const ArcModel& arcs);

    // False where numbers are too far apart for scaled messages.
    bool set(const double* w);
    // Adds the gradient of transitions and lengths.
    void add_gradient(const SegmentCounts& counts, double* out) const;
    double length(std::int32_t c, std::int64_t k) const;
    double transition(std::int32_t before, std::int32_t c) const {
        return before < 0 ? start_[c] : c < 0 ? end_[before] : scores_[before * table.stride + c];
    }

    const Kernels<double>& kernels;
    SegmentTable<double> table;
    const double* own = nullptr;        // [W] at w
    std::vector<std::int32_t> type_of;  // [L] of each label
    std::vector<std::uint8_t> begins;   // [L] whether a segment begins with the label

  private:
    const SegmentData& data_;
    const SegmentModel& model_;
    const ArcModel& arcs_;
    ArcTables arc_scores_;
    std::vector<double> scores_, start_, end_;  // [C, Q], [Q] −inf: absent
    Buffer<double> weights_, transposed_, exp_start_, exp_end_, lengths_, beyond_, longer_;
};

}  // namespace crfkit
