// Brown clusters (Brown et al. 1992): words merged into classes, greedily, so that the classes of
// neighbouring words tell the most about each other.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/interruption.hpp"

namespace crfkit {

// The bigrams of a text, over words 0 … n_words − 1 by falling frequency.
struct BigramLists {
    std::vector<std::int64_t> ptr;     // [n_words + 1]
    std::vector<std::int32_t> others;  // the neighbours of each word, rising
    std::vector<std::uint32_t> counts;
};

// Merges words into classes. The first n_classes words are a class each. Then, word by word, the next one
// becomes a class, and the two classes are merged whose merging loses least of the average mutual information
//
//     I = Σ_ab n_ab / N · log (n_ab N / (l_a r_b))        n_ab: bigrams of classes a and b; l, r: their sums
//
// of the bigrams between words that have a class already. At last the n_classes classes are merged into one,
// which gives a binary tree. A class is known by its first word; among equal losses the least pair is taken.
//
// N · I = Σ F(n_ab) − Σ F(l_a) − Σ F(r_b) + F(N) with F(n) = n log2 n. F is rounded to a fixed point, so that
// all sums are exact: the losses of all pairs are updated, count by count, and are always what they would be
// if computed anew.
class BrownClusters {
  public:
    using Merge = std::pair<std::int32_t, std::int32_t>;  // the class that stays, the one that joins it

    // Bigrams of each sentence tokens[ptr[n] : ptr[n + 1]]. Throws std::invalid_argument for a token that is
    // no word, for fewer than one class, and for 2^32 tokens or more.
    BrownClusters(std::span<const std::int32_t> tokens, std::span<const std::int64_t> ptr,
                  std::int32_t n_words, std::int32_t n_classes);

    // n_words − 1, of which the last n_classes − 1 make the tree.
    std::int64_t n_merges() const { return n_words_ > 0 ? n_words_ - 1 : 0; }
    const std::vector<Merge>& merges() const { return merges_; }
    // Up to n more merges; whether there are more to come. After an interruption it must not be used again.
    bool run(std::int64_t n);

  private:
    using Loss = std::int64_t;

    Loss information(std::uint64_t n) const {
        return n < table_.size() ? table_[n] : computed_information(n);
    }
    Loss computed_information(std::uint64_t n) const;
    // F(a + b) − F(a) − F(b)
    Loss joined(std::uint64_t a, std::uint64_t b) const {
        return a == 0 || b == 0 ? 0 : information(a + b) - information(a) - information(b);
    }
    std::uint32_t count(std::size_t a, std::size_t b) const { return counts_[a * n_slots_ + b]; }
    Loss& loss(std::size_t i, std::size_t j) { return losses_[i < j ? j * n_slots_ + i : i * n_slots_ + j]; }

    void add_word(std::int32_t word);
    void merge_best();
    void merge(std::size_t kept, std::size_t gone);
    // Adds to the count of a bigram of classes, and updates the losses of all pairs that it is part of.
    void add(std::size_t a, std::size_t b, std::int64_t more);
    void update_sums();
    void add_to_sum(std::vector<std::uint64_t>& sums, std::size_t a, std::int64_t more);
    Loss diagonal(std::size_t i, std::size_t j) const;

    std::int32_t n_words_;
    std::size_t n_classes_;
    std::size_t n_slots_;  // n_classes + 1 places for classes
    int bits_ = 0;         // of the fixed point
    std::vector<Loss> table_;
    BigramLists before_, after_;         // the words before and after each word
    std::vector<std::int32_t> slot_of_;  // [n_words] the slot of a word's class; −1: it has none yet
    std::vector<std::vector<std::int32_t>> members_;    // [n_slots]
    std::vector<std::int32_t> first_word_;              // [n_slots] of the class; −1: the slot is free
    std::vector<std::uint32_t> counts_, transposed_;    // [n_slots, n_slots] n_ab, n_ba
    std::vector<std::int64_t> more_left_, more_right_;  // [n_slots] what is still to be added to l and r
    std::vector<std::uint64_t> left_, right_;           // [n_slots] l, r
    std::vector<Loss> losses_;                          // [n_slots, n_slots] of pairs i > j
    std::int32_t next_word_ = 0;
    std::vector<Merge> merges_;
    Pace pace_;
};

}  // namespace crfkit
