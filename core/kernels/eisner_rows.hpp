// Charts of projective trees (Eisner 1996) for dense scores, and the passes over them.
#pragma once

#include <cstdint>

namespace crfkit {

// Numbers of the spans of n places, in several arrays of the same layout. Row w has the spans i … i + w,
// i = 0 … n − 1 − w, one after the other, so that all spans of one width are computed side by side:
//   S(i, w) = Σ_k C→(i, k) C←(i + k + 1, w − 1 − k)
// is, for each k, the product of two rows from some place on. What lies outside of a row is 0 (−inf for
// maxima): kPad numbers before the first row and after every row, which is as far as a vector reaches. Sums
// at places outside of a row come out as 0, so that these remain as they are.
struct EisnerChart {
    enum Array : std::int64_t {
        kWeightRight,            // exp(score) of the arc i → i + w
        kWeightLeft,             // of the arc i + w → i
        kArcRight,               // I→, as in trees/projective_graph.hpp
        kArcLeft,                // I←
        kRight,                  // C→
        kLeft,                   // C←
        kInside,                 // as many arrays for the inside pass
        kOutArcRight = kInside,  // outside sums of these
        kOutArcLeft,
        kOutRight,
        kOutLeft,
        kOutSpan,  // of S
        kArrays
    };
    static constexpr std::int64_t kPad = 8;

    double* numbers;  // [kArrays, size(n)]
    std::int64_t n;   // places
    // Of the goal: outside sums of C←(0, w) and of C→(n − 1 − w, w), [n] each.
    const double *goal_left, *goal_right;

    static std::int64_t size(std::int64_t n) { return kPad + n * (n + 1) / 2 + n * kPad; }
    // Where row w begins.
    static std::int64_t row(std::int64_t n, std::int64_t w) {
        return kPad + w * (n + kPad) - w * (w - 1) / 2;
    }
    double* array(Array which) const { return numbers + which * size(n); }
};

// For doubles, compiled for the processor at hand (eisner_kernels.hpp).
struct EisnerKernels {
    // Fills I and C from the weights: sums of products; C(i, 0) = 1.
    void (*inside)(const EisnerChart& chart);
    // Fills the outside sums.
    void (*outside)(const EisnerChart& chart);
    // I and C as maxima of sums, of scores in place of the weights; C(i, 0) = 0.
    void (*viterbi)(const EisnerChart& chart);
};

// The fastest table that this processor can run.
const EisnerKernels& eisner_kernels();

}  // namespace crfkit
