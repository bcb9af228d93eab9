// Charts of projective trees with adjacent siblings (McDonald & Pereira 2006) for dense scores, and the
// passes over them.
#pragma once

#include <cstdint>

namespace crfkit {

// Numbers of the spans i … j of n places, as in trees/projective_graph.hpp, in several arrays [n, stride]:
// rows by i, aligned and padded to whole vectors; what is no span, before i and behind the end, is 0 (−inf
// for maxima). Numbers of siblings (i, k, j), i < k < j, stand in a row for each i and k, from the last whole
// vector at or before k + 1 on.
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

    std::int64_t stride() const { return padded(n); }
    double* row(Array which, std::int64_t i) const { return numbers + (which * n + i) * stride(); }
    // The weight of (i, k, j) is the number j − begin(k) of this row.
    double* right_row(std::int64_t i, std::int64_t k) const { return right + row_ptr[i * n + k]; }
    double* left_row(std::int64_t i, std::int64_t k) const { return left + row_ptr[i * n + k]; }
    static std::int64_t begin(std::int64_t k) { return (k + 1) / kPad * kPad; }
    // Of the memory that `write` needs.
    static std::int64_t planes_size(std::int64_t n, std::int64_t side) {
        return kPad * n * padded(n) + side * side + kPad;
    }
    static std::int64_t padded(std::int64_t size) { return (size + kPad - 1) / kPad * kPad; }
};

// Scores of siblings [side, side, side] (head, sibling, dependent) as they are given. Places of the chart
// begin at number `first` of each axis; places before `least` are no dependents. Vectors are read beyond the
// ends of rows, so there must be kLeastSide words and the root at least.
struct SiblingScores {
    static constexpr std::int64_t kLeastSide = 6;

    const double* siblings;
    std::int64_t side, first, least;
    // Added to the scores: of arcs to the right [n, side], rows by head, with kPad numbers behind; of arcs to
    // the left [n, stride], rows by dependent.
    const double *arcs_right, *arcs_left;

    const double* row(std::int64_t head, std::int64_t sibling) const {
        return siblings + ((head + first) * side + sibling + first) * side + first;
    }
};

// For doubles, compiled for the processor at hand (sibling_kernels.hpp, sibling_places.hpp).
struct SiblingKernels {
    // Whether no number is NaN or +inf. They are read in their order, as fast as memory gives them: the other
    // kernels, which read here and there, find them in the cache afterwards.
    bool (*all_usable)(const double* x, std::int64_t n);
    // Fills the weights of siblings, the first ones to the left not: exp(score + that of the arc). The
    // highest such sum.
    double (*weigh)(const SiblingChart& chart, const SiblingScores& scores);
    // The same without arcs and without exp, for maxima.
    double (*place)(const SiblingChart& chart, const SiblingScores& scores);
    // Fills I, C and S from the weights: sums of products; C(i, i) = 1.
    void (*inside)(const SiblingChart& chart);
    // Fills the outside sums, which hold those of the goal and 0 otherwise. The weights of siblings, first
    // ones too, become their probabilities.
    void (*outside)(const SiblingChart& chart);
    // I, C and S as maxima of sums, of scores in place of weights; C(i, i) = 0.
    void (*viterbi)(const SiblingChart& chart);
    // The numbers of siblings into an array [side, side, side] (head, sibling, dependent), those of all heads
    // that are places of the chart, of which the first is number `first` of each axis. `streamed`: past the
    // caches. `planes` [planes_size(n, side)] is overwritten.
    void (*write)(const SiblingChart& chart, std::int64_t first, bool streamed, double* planes,
                  double* siblings);
    // x_j = max(x_j, y_j)
    void (*raise)(double* x, const double* y, std::int64_t n);
    // out_j = exp(x_j + y_j), x + y ≤ 0 but for rounding; 0 for −inf and where it would be subnormal.
    void (*weigh_row)(const double* x, const double* y, std::int64_t n, double* out);
};

// The fastest table that this processor can run.
const SiblingKernels& sibling_kernels();

}  // namespace crfkit
