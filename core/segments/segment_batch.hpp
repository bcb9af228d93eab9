// Many semi-Markov chains of plain scores at once: log Z, the probabilities of all parts, and the best
// segmentations.
#pragma once

#include <cstdint>

namespace crfkit {

// Scores of N sequences of up to T positions in rows without padding. What stands beyond the end of a
// sequence is never read.
struct SegmentBatch {
    std::int64_t n_sequences, n_positions, n_lengths;  // N, T, K
    std::int32_t n_labels;                             // L
    const double* states;                              // [N, T, L]
    const double* lengths;                             // [K, L] of the lengths 1 … K
    const double* transitions;                         // [L, L], or [N, L, L] with own_transitions
    bool own_transitions;
    const double *start, *end;           // [L] or null
    const double *first, *last;          // [N, T, L] or null
    const double* segments;              // [N, T, K, L] by begin and length, or null
    const std::int64_t* sequence_sizes;  // [N], 0 to T
};

// What is found of each sequence. All but log_partition and hard stays as it is where the sequence is hard,
// and beyond its end. begins, ends and segments may be null.
struct SegmentBatchSums {
    double* log_partition;  // [N]
    std::uint8_t* hard;     // [N] 1: scaled messages may have lost something, or nothing is possible
    double* covers;         // [N, T, L] probability that a segment covers the position
    double* lengths;        // [N, K, L] expected numbers
    double* transitions;    // [N, L, L]
    double *start, *end;    // [N, L]
    double *begins, *ends;  // [N, T, L] probabilities that a segment begins, ends there
    double* segments;       // [N, T, K, L]
};

void sum_segments(const SegmentBatch& batch, const SegmentBatchSums& out, int n_threads);

// The best segmentations as tags [N, T]: the label c where a segment begins, c + L at its other positions;
// −1 beyond the end, and where no segmentation is possible.
void best_segments(const SegmentBatch& batch, std::int64_t* tags, int n_threads);

}  // namespace crfkit
