// The numeric kernels, as a table of functions: one table per instruction set and precision.
//
// Letters: T positions, L labels, S = stride: L rounded up to whole vectors and to a multiple of 8. Rows of
// labels [S] are aligned to a vector and padded: pads hold −inf among scores and 0 among weights, messages
// and probabilities.
#pragma once

#include <cstdint>

#include "base/sum_grid.hpp"

namespace crfkit {

// Arcs between all labels, in exp space: weight = exp(score − maximum), so that no exp is left in the inner
// loops.
template <class Real>
struct ArcTable {
    std::int32_t n_labels;   // L
    std::int32_t stride;     // S
    double maximum;          // maximum of the scores
    const Real* weight;      // [L, S]  row = label before
    const Real* transposed;  // [L, S]  row = label after
    // Only for Hessian–vector products: weight · direction, with direction the change of each arc's score.
    const Real* moved;             // [L, S]
    const Real* moved_transposed;  // [L, S]
    bool some_missing = false;     // some arcs do not exist: see kMostFollowing
};

// Arcs that belong to one position of one sequence (features on arcs): fields as above, without transposes.
template <class Real>
struct PositionArcs {
    double maximum;
    const Real* weight;  // [L, S]; null: the shared table holds here
    const Real* moved;   // [L, S]; only for Hessian–vector products
};

// Messages of one sequence. With U_t = exp(states_t − max_t):
//   forward_t  = (forward_{t−1} W) ∘ U_t / |forward_{t−1}|₁,          forward_0 = U_0
//   pushed_t   = U_t ∘ backward_t / |forward_{t−1}|₁,                 backward_{T−1} = 1 / |forward_{T−1}|₁
//   backward_{t−1} = W pushed_t
// so that P(y_t) = forward_t ∘ backward_t and P(y_{t−1} = a, y_t = b) = forward_{t−1}(a) W(a, b) pushed_t(b)
// need no further division, and log Z = Σ_t (max_t + arc max_t + log |forward_t|₁).
template <class Real>
struct Messages {
    Real* states;    // [T, S] in: scores (start and end folded in); out: U
    Real* forward;   // [T, S]
    Real* backward;  // [T, S]
    Real* pushed;    // [T, S] row 0 unused
    Real* scale;     // [T]    1 / |forward_{t−1}|₁ ; scale[0] = 1 / |forward_{T−1}|₁
    Real* probs;     // [T, S] out: weight · P(y_t); may be `states`, whose rows it then replaces
    Real weight;
};

// Directional derivatives of the messages (weighted by the messages themselves), see hessian_kernels.hpp.
template <class Real>
struct HessianVectors {
    Real* direction;  // [T, S] in: change of the state scores (start and end folded in)
    Real* forward;    // [T, S]
    Real* backward;   // [T, S]
    Real* pushed;     // [T, S] row 0 unused
    Real* shift;      // [T]
    Real* probs;      // [T, S] out: weight · change of P(y_t)
    Real* extra;      // [S] scratch
};

// What is active at the positions of a sequence: whole rows of weights, and single weights.
template <class Real>
struct PositionFeatures {
    const std::int64_t* row_ptr;       // [T + 1]
    const std::int32_t* row_ids;       // index of the row of weights
    const Real* row_values;            // or null: all 1
    const std::int64_t* entry_ptr;     // [T + 1]
    const std::int32_t* entry_ids;     // index into `weights`
    const std::int32_t* entry_labels;  // the label that the weight scores
    const Real* entry_values;          // or null: all 1
    const Real* rows;                  // [n_rows, S]
    const Real* weights;               // [n_weights]
};

// Which weights a feature has, for those that are looked up one by one: a row (n < 0) with the number
// `first`, one weight (n = 1) for the label `first`, or n weights from number `first` on.
template <class Real>
struct FeatureWeights {
    Real weight;
    std::int32_t first, n;
};

// The same as features, before they are divided into rows and single weights.
template <class Real>
struct ListedFeatures {
    const std::int64_t* position_ptr;      // [T + 1]
    const std::int32_t* ids;               // features
    const Real* values;                    // or null: all 1
    const FeatureWeights<Real>* features;  // [F]
    const std::int32_t* pair_labels;       // [n_weights] the labels that weights score
    const Real* rows;                      // [n_rows, S]
    const Real* weights;                   // [n_weights]
};

// How many chains are computed side by side, in rows of so many vectors: as many as have their sums in
// registers. 0: rows of any width.
inline constexpr std::int32_t kMostChains = 8;
constexpr std::int32_t chains_side_by_side(std::int32_t n_vectors) {
    switch (n_vectors) {
        case 1:
            return kMostChains;
        case 2:
        case 3:
            return 4;
        case 4:
            return 2;
        default:
            return 1;
    }
}

// A transposed list: which positions each row (or single weight) is active at.
template <class Real>
struct PositionLists {
    const std::int64_t* ptr;        // [n + 1]
    const std::int32_t* positions;  // row number in `residuals`
    const Real* values;             // or null: all 1
};

// Where some arcs do not exist, a label that underflows may be the only predecessor of a likely one, so it
// has to be shown that scaled messages lost nothing that matters. Scores of labels that are open never become
// 0 (kLowest), and kFloor, more than all products that underflow in one push, is added to every backward
// message: it is never below the true one. A product that underflowed in the forward pass was then worth at
// most the smallest number times what follows it, which is backward or pushed. Up to kMostFollowing that is
// nothing; beyond it the sequence is computed in log space.
template <class Real>
inline constexpr Real kLowest = sizeof(Real) == 4 ? Real(-87) : Real(-708);
template <class Real>
inline constexpr Real kFloor = sizeof(Real) == 4 ? Real(1e-33) : Real(1e-300);
// Probabilities below kImpossible, to which kFloor alone can lead, are given as 0.
template <class Real>
inline constexpr Real kImpossible = sizeof(Real) == 4 ? Real(1e-28) : Real(1e-250);
template <class Real>
inline constexpr Real kMostFollowing = sizeof(Real) == 4 ? Real(1e22) : Real(1e280);

// Where arcs that are not listed exist, listed ones of a lower score are taken off their sum, which costs
// digits. Rounding errors of this sum are worth at most its size times what follows it; up to
// kMostCancelled that leaves enough digits.
template <class Real>
inline constexpr Real kMostCancelled = sizeof(Real) == 4 ? Real(1e3) : Real(1e4);

// Sequences that are done at once where arcs are few: 64 bytes of numbers.
template <class Real>
inline constexpr int kBatch = 64 / static_cast<int>(sizeof(Real));

// The arcs that are listed, by label after and by label before, in exp space as in ArcTable. Arcs that are
// not listed have the weight `unlisted` (0: they do not exist), and weights are those above it.
template <class Real>
struct SparseArcs {
    std::int32_t n_labels;
    const std::int64_t* in_ptr;     // [L + 1]
    const std::int32_t* in_before;  // [A]
    const Real* in_weight;          // [A] weight − unlisted
    const Real* in_moved;           // [A] weight · change of the score; only for Hessian–vector products
    const std::int64_t* out_ptr;    // [L + 1]
    const std::int32_t* out_after;  // [A]
    const Real* out_weight;         // [A]
    const Real* out_moved;          // [A]
    Real unlisted;
};

// Messages of a batch, W = kBatch lanes.
template <class Real>
struct BatchMessages {
    const std::int32_t* lengths;  // [W]
    Real* states;        // [T, L, W] exp(score − maximum of the position); 0 beyond the end of a lane
    Real* forward;       // [T, L, W]
    Real* backward;      // [T, L, W]
    Real* pushed;        // [T, L, W]
    Real* probs;         // [T, L, W] out: P(y_t)
    Real* mass;          // [T, W]    |forward_t|₁
    Real* inverse_mass;  // [T, W]
    Real* largest;       // [W]       largest `backward` and `pushed` of a label that is open
    Real* cancelled;     // [W]       largest sum over unlisted arcs, times what follows it
};

template <class Real>
struct BatchHessianVectors {
    Real* direction;  // [T, L, W] in: change of the state scores
    Real* forward;    // [T, L, W]
    Real* backward;   // [T, L, W]
    Real* pushed;     // [T, L, W]
    Real* shift;      // [T, W]
    Real* extra;      // [L, W] scratch
};

// One step of a trellis (trellis.hpp) in exp space: weight = exp(score − maximum of the step), 1 for silent
// arcs. Destinations are counted from the first pool: pools, then the nodes of the level after.
template <class Real>
struct StepArcs {
    std::int32_t n_before, n_pools, n_after;
    std::int32_t first_scored;      // destinations below it have silent arcs only
    const std::int32_t* in_ptr;     // [n_pools + n_after + 1]
    const std::int32_t* source;     // [arcs] node before, or n_before + pool; by destination
    const Real* weight;             // [arcs]
    const std::int32_t* out_ptr;    // [n_before + n_pools + 1]
    const std::int32_t* reached;    // [arcs] destination; by source
    const Real* out_weight;         // [arcs]
    const std::int32_t* labels;     // [n_before] of the nodes before; null at the source
    const std::int32_t* following;  // [n_after] labels of the nodes after; null at the sink
};

// Messages of a batch of sequences that share a trellis, W = kBatch lanes, at the nodes before a step. The
// recursions are those of Messages, with nodes in place of labels.
template <class Real>
struct StepMessages {
    const Real* states;  // [L, W] exp(score − maximum) of the position before; null at the source
    const Real* scale;   // [W] inverse mass of the level before that, by which `forward` was multiplied
    Real* forward;       // [n_before + n_pools, W]
    Real* following;     // [n_pools + n_after, W] backward of the pools, pushed of the nodes after
};

// Types of segments in exp space, C of them in rows of Q = stride (see segment_kernels.hpp). Lengths have
// weights up to K = n_lengths; 0: no segment of the type has it.
template <class Real>
struct SegmentTable {
    std::int32_t n_types, stride;
    std::int64_t n_lengths;
    const Real* weights;      // [C, Q] of transitions, row = type before
    const Real* transposed;   // [C, Q] row = type after
    const Real *start, *end;  // [Q]
    const Real* lengths;      // [K, Q]
    const Real* beyond;       // [Q] of a segment that goes on after K positions
    const Real* longer;       // [Q] of each position after these
};

// Messages of one sequence.
template <class Real>
struct SegmentMessages {
    Real *first, *inside, *last, *single;  // [T, Q] in: weights of positions by role; out: the same, scaled
    const std::int32_t* cells;             // [T, K] by last position and length: row of `factors`, −1: none
    const Real* factors;                   // [cells, Q] of segments with features; both null: there are none
    Real *begin, *going, *long_going, *several, *ended;  // [T, Q] forward
    Real *after, *before, *rest, *gamma, *window;        // [T, Q] backward
    Real* partition;                                     // [1] Z, scaled
};

// What follows from them: probabilities of the roles of positions [T, Q], and sums that are added to.
template <class Real>
struct SegmentSums {
    Real *first, *last, *single;  // [T, Q]
    Real* lengths;                // [K, Q] expected number of segments by length
    Real* entering;               // [Q] expected number of segments of more than K positions
    Real* beyond;                 // [Q] and of their positions after K
    Real* cells;                  // [cells, Q] probability of each segment with features
};

template <class Real>
struct Kernels {
    int lanes;  // numbers in one vector

    // out[i] = exp(x[i] − maximum), x ≤ maximum; n a multiple of `lanes`.
    void (*exp_shifted)(const Real* x, Real maximum, Real* out, std::int64_t n);

    // Replaces a row of n scores by exp(score − their maximum), of −inf alone by 0; returns it; −inf: nothing
    // is done.
    Real (*exponentiate)(Real* row, std::int64_t n);

    // states[t] = base + Σ value · row + Σ value · weight, for T positions.
    void (*score_positions)(const PositionFeatures<Real>& features, std::int64_t n_positions,
                            std::int32_t stride, const Real* base, Real* states);

    void (*score_listed)(const ListedFeatures<Real>& features, std::int64_t n_positions, std::int32_t stride,
                         const Real* base, Real* states);

    // states[t] += x[t] W for a dense block: x [T, K], W [K, S].
    void (*score_dense)(const Real* x, std::int64_t n_positions, std::int64_t n_columns, const Real* weights,
                        std::int32_t stride, Real* states);

    // Forward and backward messages and P(y_t). Returns log Z; −inf when no label sequence is possible
    // (backward messages and probabilities are then not filled in). `position_arcs` is null or has T entries;
    // entry t describes the arc into position t.
    double (*sum_product)(const ArcTable<Real>& arcs, const PositionArcs<Real>* position_arcs,
                          std::int64_t n_positions, const Messages<Real>& messages);

    // The same for up to kMostChains chains without arcs of their own, side by side: log Z of each.
    void (*sum_products)(const ArcTable<Real>& arcs, std::int32_t n_chains, const std::int64_t* n_positions,
                         const Messages<Real>* messages, double* log_partitions);

    // The change of P(y_t) along a direction, from the states, forward, backward and scale that sum_product
    // left; fills in `pushed` again.
    void (*hessian_vectors)(const ArcTable<Real>& arcs, const PositionArcs<Real>* position_arcs,
                            std::int64_t n_positions, const Messages<Real>& messages,
                            const HessianVectors<Real>& hessian_vectors);

    // out[a, b] += Σ_t left[t](a) · right[t](b), t = 0..n−1.   left, right [n, S], out [S, S].
    void (*add_products)(const Real* left, const Real* right, std::int64_t n, std::int32_t n_labels,
                         std::int32_t stride, Real* out);

    // out[a, b] += Σ forward_{t−1}(a) · pushed'_t(b) + F_{t−1}(a) · pushed_t(b) over n positions from t on,
    // where pushed' and F are the Hessian–vector products' `pushed` and `forward`.
    void (*add_changes)(const Messages<Real>& messages, const HessianVectors<Real>& hessian_vectors,
                        std::int64_t t, std::int64_t n, std::int32_t n_labels, std::int32_t stride,
                        Real* out);

    // best[t](b) = states[t](b) + max_a (best[t−1](a) + arcs(a, b)), lowered by its maximum at every
    // position. Returns the sum of what was subtracted: the score of the best label sequence.
    double (*max_sum)(const Real* arcs, const Real* const* position_arcs, std::int64_t n_positions,
                      std::int32_t n_labels, std::int32_t stride, const Real* states, Real* best);

    // table[targets[list]](s) += Σ_i value_i · residuals[position_i](s) for lists first..last−1, the sums
    // rounded to the grid; without targets, table[list − first](s) = the same, not rounded. residuals [n, S],
    // table [·, S].
    void (*sum_rows)(const PositionLists<Real>& lists, std::int64_t first, std::int64_t last,
                     const std::int32_t* targets, const Real* residuals, std::int32_t stride, SumGrid grid,
                     double* table);

    // sums[targets[list]] += Σ_i value_i · residuals[position_i](labels[list]) for lists first..last−1,
    // rounded to the grid; without targets, sums[list − first] = the same, not rounded.
    void (*sum_entries)(const PositionLists<Real>& lists, std::int64_t first, std::int64_t last,
                        const std::int32_t* targets, const std::int32_t* labels, const Real* residuals,
                        std::int32_t stride, SumGrid grid, double* sums);

    // sums[k, s] += Σ_t x[t, k] · residuals[t](s) for columns first..last−1 of a dense block x [n, K]; sums
    // [K, S].
    void (*sum_dense)(const Real* x, std::int64_t n, std::int64_t n_columns, std::int64_t first,
                      std::int64_t last, const Real* residuals, std::int32_t stride, double* sums);

    // Messages and P(y_t) of a batch, and their change along a direction (after sum_product; into probs).
    void (*batch_sum_product)(const SparseArcs<Real>& arcs, std::int64_t n_positions,
                              const BatchMessages<Real>& messages);
    void (*batch_hessian_vectors)(const SparseArcs<Real>& arcs, std::int64_t n_positions,
                                  const BatchMessages<Real>& messages,
                                  const BatchHessianVectors<Real>& hessian_vectors);
    // sums[k] += Σ_t Σ_lane left_{t−1}(before_k) · right_t(after_k), t = 1..T−1, for all listed arcs k.
    void (*batch_products)(const SparseArcs<Real>& arcs, std::int64_t n_positions, const Real* left,
                           const Real* right, double* sums);

    // From the forward messages of the nodes before a step, scaled by inverse_mass, to those of its pools and
    // of the nodes after it: `after` [n_after, W], its sum `mass` [W] and the inverse of that. states [L, W]
    // of the position after; null at the sink.
    void (*trellis_forward)(const StepArcs<Real>& step, const Real* states, const Real* inverse_mass,
                            Real* forward, Real* after, Real* mass, Real* next_inverse_mass);
    // From pushed of the nodes after a step to backward of its pools (both in `following`), pushed [n_before,
    // W] of the nodes before and P(label) [L, W] of their position; raises `largest` [W] as in BatchMessages.
    void (*trellis_backward)(const StepArcs<Real>& step, std::int32_t n_labels,
                             const StepMessages<Real>& messages, Real* pushed, Real* probs, Real* largest);
    // sums[e] += Σ_lane forward(source) · following(destination) for all arcs e that may have a score.
    void (*trellis_products)(const StepArcs<Real>& step, const Real* forward, const Real* following,
                             double* sums);

    // Forward messages of segmentations. Returns log Z, to which the maxima of positions have to be added.
    double (*segment_forward)(const SegmentTable<Real>& table, std::int64_t n_positions,
                              const SegmentMessages<Real>& messages);
    // The rest. Returns the largest backward message.
    Real (*segment_backward)(const SegmentTable<Real>& table, std::int64_t n_positions,
                             const SegmentMessages<Real>& messages, const SegmentSums<Real>& sums);
};

// The fastest table that this processor can run for rows of this many labels: the widest vectors, unless they
// would pad the rows much further than narrower ones.
template <class Real>
const Kernels<Real>& kernels_for(std::int32_t n_labels);

// S: L rounded up to whole vectors of these kernels, and to a multiple of 8.
template <class Real>
std::int32_t stride_for(const Kernels<Real>& kernels, std::int32_t n_labels) {
    const std::int32_t unit = kernels.lanes > 8 ? kernels.lanes : 8;
    return (n_labels + unit - 1) / unit * unit;
}

// The best instruction set of this processor: "baseline", "x86-64-v3" or "x86-64-v4".
const char* instruction_set();

}  // namespace crfkit
