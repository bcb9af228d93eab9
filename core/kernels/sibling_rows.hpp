// Charts of projective trees with adjacent siblings (McDonald & Pereira 2006) for dense scores, and the
// passes over them.
#pragma once

#include <cstdint>

namespace crfkit {

// Numbers of the spans i … j of n places, as in trees/projective_graph.hpp, in several arrays [n, stride]:
// rows by i, and behind each row at least kPad numbers that are 0 (−inf for maxima). Numbers of siblings (i,
// k, j), i < k < j, stand in rows of j = k + 1 … n − 1 for each i and k, padded likewise to whole vectors.
struct SiblingChart {
    enum Array : std::int64_t {
        kFirstRight,   // weight of j as the first right dependent of i: exp((i, i, j))
        kFirstLeft,    // weight of i as the first left dependent of j: exp((j, j, i))
        kWeightRight,  // of the arc i → j, for maxima alone: sums have it in the weights of siblings
        kWeightLeft,   // of the arc j → i
        kArcRight,     // I→
        kArcLeft,      // I←
        kRight,        // C→
        kLeft,         // C←
        kSpan,         // S
        kInside,       // as many arrays for the inside pass
        kOutArcRight = kInside,  // outside sums of these
        kOutArcLeft,
        kOutRight,
        kOutLeft,
        kOutSpan,
        kArrays
    };
    static constexpr std::int64_t kPad = 8;

    double* numbers;              // [kArrays, n, stride]
    double *right, *left;         // weights of siblings: of head i and dependent j; of head j and dependent i
    const std::int64_t* row_ptr;  // [n, n] where the row of (i, k) begins
    std::int64_t n;               // places
    double scale;                 // 1 / Z, for the outside pass

    std::int64_t stride() const { return (n + kPad - 1) / kPad * kPad + kPad; }
    double* row(Array which, std::int64_t i) const { return numbers + (which * n + i) * stride(); }
};

// For doubles, compiled for the processor at hand (sibling_kernels.hpp).
struct SiblingKernels {
    // Fills I, C and S from the weights: sums of products; C(i, i) = 1.
    void (*inside)(const SiblingChart& chart);
    // Fills the outside sums, which hold those of the goal and 0 otherwise. The weights of siblings, first
    // ones too, become their probabilities.
    void (*outside)(const SiblingChart& chart);
    // I, C and S as maxima of sums, of scores in place of weights; C(i, i) = 0.
    void (*viterbi)(const SiblingChart& chart);
    // x_j = max(x_j, y_j)
    void (*raise)(double* x, const double* y, std::int64_t n);
    // out_j = exp(x_j + y_j), x + y ≤ 0 but for rounding; 0 for −inf and where it would be subnormal.
    void (*weigh)(const double* x, const double* y, std::int64_t n, double* out);
};

// The fastest table that this processor can run.
const SiblingKernels& sibling_kernels();

}  // namespace crfkit
