// What stochastic steps do to the weights that they touch, as a table of functions: one per instruction set.
//
// Weights live in slots. Those that are always touched together lie side by side and make a range; local
// arrays hold the ranges of one sequence, one behind the other.
#pragma once

#include <cstdint>

namespace crfkit {

// Slots begin..end−1.
struct SlotRange {
    std::int64_t begin, end;
};

// The strengths of a penalty: l[group of the slot], l[slot] without groups where `each`, else l[0].
struct SlotStrengths {
    const double* l;
    const std::uint8_t* groups;  // by slot, or null
    bool each;
};

// The weights of AdaGrad (see AdaGradRule): z and the root of the sum of squares; l1 and l2 times the number
// of passes are what the penalties have come to.
struct AdaptiveWeights {
    double* z;
    double* root;
    SlotStrengths l1, l2;
    double rate, passes;
};

// The weights of the average gradient, of one group: w = P v, and v is late by slope · (R − stamp). A stamp
// is kept for each range, where it begins.
struct LateWeights {
    double* v;
    const double* slopes;
    double* stamps;
    double P, R;
};

struct StepKernels {
    // to = factor · v
    void (*read)(const SlotRange* ranges, std::int64_t n, const double* v, double factor, double* to);
    // v += factor · from
    void (*add)(const SlotRange* ranges, std::int64_t n, const double* from, double factor, double* v);
    // For n slots: total += sum · v, unless there is none; then |v| ← max(|v| − shrink, 0).
    void (*settle)(double* v, double* total, double sum, double shrink, std::int64_t n);
    // to = w of AdaGrad
    void (*read_adaptive)(const SlotRange* ranges, std::int64_t n, const AdaptiveWeights& weights,
                          double* to);
    // A step of AdaGrad, where w are the weights that were read and g the gradient.
    void (*move_adaptive)(const SlotRange* ranges, std::int64_t n, const AdaptiveWeights& weights,
                          const double* w, const double* g);
    // Brings v up to date; to = P v.
    void (*read_late)(const SlotRange* ranges, std::int64_t n, const LateWeights& weights, double* to);
    // Zeros in the rows of a table [n, S] where the labels of row rows[i] have no weight; exists [rows, S].
    void (*close_gaps)(const std::int32_t* rows, std::int64_t n, std::int32_t stride,
                       const std::int8_t* exists, double* table);
};

// The fastest table that this processor can run.
const StepKernels& step_kernels();

}  // namespace crfkit
