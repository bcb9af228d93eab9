// Sets of outcomes (labels or their facets) as bits, and the weights of a feature that a set shares: without
// a walk through all weights of features that have hundreds.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "data/layout.hpp"

namespace crfkit {

// Of n outcomes, in words of 64 bits.
class OutcomeBits {
  public:
    explicit OutcomeBits(std::int32_t n) : words_(static_cast<std::size_t>(n + 63) / 64, 0) {}

    void set(std::int32_t outcome) { words_[outcome >> 6] |= std::uint64_t{1} << (outcome & 63); }
    void reset(std::int32_t outcome) { words_[outcome >> 6] &= ~(std::uint64_t{1} << (outcome & 63)); }
    bool has(std::int32_t outcome) const { return words_[outcome >> 6] >> (outcome & 63) & 1; }
    std::int64_t n_words() const { return static_cast<std::int64_t>(words_.size()); }
    const std::uint64_t* words() const { return words_.data(); }

  private:
    std::vector<std::uint64_t> words_;
};

// The features with so many weights that their outcomes are kept as bits. Pair p of the layout scores outcome
// pair_labels[p] − first_outcome.
class RowBits {
  public:
    RowBits(const Layout& layout, std::int32_t first_outcome, std::int32_t n_outcomes)
        : n_words_((n_outcomes + 63) / 64), rows_(static_cast<std::size_t>(layout.n_features()), -1) {
        std::int32_t n_rows = 0;
        for (std::int64_t f = 0; f < layout.n_features(); ++f)
            if (layout.pair_ptr[f + 1] - layout.pair_ptr[f] > kWeightsPerWord * n_words_) rows_[f] = n_rows++;
        words_.resize(static_cast<std::size_t>(n_rows * n_words_), {0, 0});
        for (std::int64_t f = 0; f < layout.n_features(); ++f) {
            if (rows_[f] < 0) continue;
            Word* const words = words_.data() + rows_[f] * n_words_;
            for (std::int64_t p = layout.pair_ptr[f]; p < layout.pair_ptr[f + 1]; ++p) {
                const std::int32_t outcome = layout.pair_labels[p] - first_outcome;
                words[outcome >> 6].bits |= std::uint64_t{1} << (outcome & 63);
            }
            std::uint32_t before = 0;
            for (std::int64_t i = 0; i < n_words_; ++i) {
                words[i].before = before;
                before += static_cast<std::uint32_t>(std::popcount(words[i].bits));
            }
        }
    }

    bool has(std::int32_t f) const { return rows_[f] >= 0; }
    // Prefetches the bits of a feature that has such.
    void fetch(std::int32_t f) const {
        if (rows_[f] >= 0) __builtin_prefetch(words_.data() + rows_[f] * n_words_);
    }
    // found(i, outcome) for the outcomes of a set that feature f has weights for; i counts among its weights.
    template <class Function>
    void each_shared(std::int32_t f, const OutcomeBits& set, const Function& found) const {
        const Word* const words = words_.data() + rows_[f] * n_words_;
        const std::uint64_t* const of_set = set.words();
        for (std::int64_t k = 0; k < n_words_; ++k)
            for (std::uint64_t both = words[k].bits & of_set[k]; both; both &= both - 1) {
                const std::uint64_t below = (both & -both) - 1;
                found(words[k].before + std::popcount(words[k].bits & below),
                      static_cast<std::int32_t>(64 * k + std::countr_zero(both)));
            }
    }

  private:
    static constexpr std::int64_t kWeightsPerWord = 2;  // up to here a walk takes about as long
    struct Word {
        std::uint64_t bits;
        std::uint32_t before;  // bits in the words before
    };
    std::int64_t n_words_;
    std::vector<std::int32_t> rows_;  // [F] −1: no bits
    std::vector<Word> words_;         // [rows, n_words]
};

}  // namespace crfkit
