// Dropout: each sequence is seen without some of its features, chosen at random in every pass.
//
//   w_d ← w_d · m / (1 − rate)      m = 0 with probability `rate`, else 1: the same for all weights of a
//   feature
//
// for the weights that a sequence reads, and the same for its gradient. Whether feature f of sequence n is
// dropped follows from (seed, n, f) alone, so the bits depend neither on threads nor on the order of steps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "training/sequence_loss.hpp"

namespace crfkit {

struct Dropout {
    std::vector<std::int32_t> features;  // [D] the feature of each weight; −1: never dropped
    double rate;                         // from 0 on, below 1
    std::uint64_t seed;                  // of the pass

    // 0 where feature f of sequence n is dropped, else 1 / (1 − rate).
    double factor(std::int64_t n, std::int32_t f) const;
};

// The sequences of another source with dropout; both must outlive it. Throws std::invalid_argument where
// there is not one feature for each of `n_weights` weights.
std::unique_ptr<SequenceSource> drop_features(const SequenceSource& source, const Dropout& dropout,
                                              std::int64_t n_weights);

}  // namespace crfkit
