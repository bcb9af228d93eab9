// Forward–backward over the segmentations of one sequence, by the kernels for all types at once; the best
// segmentation by Viterbi. Each thread has an object of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "segments/segment_weights.hpp"

namespace crfkit {

class SegmentPass {
  public:
    // Both must outlive it.
    SegmentPass(const SegmentData& data, const SegmentWeights& weights)
        : data_(data), model_(data.model), weights_(weights) {}

    // Reads the features of the segments of sequence n. False where their scores are too far from 0 for
    // scaled messages; for Viterbi that does not matter.
    bool load(std::int64_t n);
    // Log Z of the loaded sequence, whose labels have these scores [T, S]; all that follows is about them.
    // False where scaled messages may have lost something, or nothing is possible.
    template <class Real>
    bool run(const Real* states, std::int64_t stride, double& log_partition);
    // probs [T, S] += weight · P(y_t).
    void add_probs(double weight, std::int64_t stride, double* probs) const;
    // Calls found(s, e, probability) for the segments s … e − 1 of type c whose probability is at least
    // `threshold`.
    template <class Found>
    void each_segment(std::int32_t c, double threshold, const Found& found) const;
    // The expected number of segments of type c.
    double n_segments(std::int32_t c) const;
    // Expected numbers of all that segments have.
    const SegmentCounts& count();

    // Viterbi: the labels [T] of the best segmentation. Returns its score; −inf: nothing is possible.
    template <class Real>
    double decode(const Real* states, std::int64_t stride, std::int32_t* labels);
    // The score of the segmentation that labels [T] are, which must be one. Calls visit(type before or −1, c,
    // length, cell or −1) for each segment, and visit(type, −1, 0, −1) at the end.
    template <class Real, class Visit>
    double score(const Real* states, std::int64_t stride, const std::int32_t* labels,
                 const Visit& visit) const;

    // Calls function(own weight, value) for the features of a cell that score type c.
    template <class Function>
    void each_feature(std::int32_t cell, std::int32_t c, const Function& function) const {
        model_.each_pair(data_.features, cells_[cell], [&](std::int32_t type, std::int64_t id, double value) {
            if (type == c) function(id, value);
        });
    }

  private:
    enum Row {
        kFirst,
        kInside,
        kLast,
        kSingle,
        kBegin,
        kGoing,
        kLong,
        kSeveral,
        kEnded,
        kAfter,
        kBefore,
        kRest,
        kGamma,
        kWindow,
        kProbFirst,
        kProbLast,
        kProbSingle,
        kRows
    };

    double* rows(Row i) { return rows_.data() + i * T_ * weights_.table.stride; }
    const double* rows(Row i) const { return rows_.data() + i * T_ * weights_.table.stride; }
    std::int32_t cell(std::int64_t last, std::int64_t k) const {
        return cells_.empty() ? -1 : cell_of_[last * weights_.table.n_lengths + k - 1];
    }
    template <class Real>
    bool weigh(const Real* states, std::int64_t stride, double& maxima);
    double segment_score(std::int32_t c, std::int64_t last, std::int64_t k) const;

    const SegmentData& data_;
    const SegmentModel& model_;
    const SegmentWeights& weights_;
    std::int64_t T_ = 0;
    std::vector<std::int64_t> cells_;    // cells of the sequence, as the data set numbers them
    std::vector<std::int32_t> cell_of_;  // [T, K] by last position and length, −1: none
    Buffer<double> cell_scores_, factors_, cell_probs_;  // [cells, Q]
    Buffer<double> row_, rows_;                          // [S]; [kRows, T, Q]
    double partition_ = 0;
    SegmentCounts counts_;
};

}  // namespace crfkit

#include "segments/segment_spans.hpp"
#include "segments/segment_viterbi.hpp"
