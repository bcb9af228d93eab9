// Which features imply which: f implies g where g is active at every position at which f is.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "data/design.hpp"

namespace crfkit {

// Features with a value of 1, which have numbers here: that of their row, or the number of rows plus that of
// their pair.
class ImpliedFeatures {
  public:
    ImpliedFeatures(const SplitFeatures& features, std::int64_t n_rows, std::int64_t n_pairs, int n_threads);

    // Whether it pays to score m features that are active together at n positions as one. To read one more
    // row costs eight times as much as to read that of a frequent feature, which is in the cache, and its
    // sums are moved once for each block that has it; each position spares m − 1 features; the row itself
    // takes m, and so does its sum.
    bool pays(std::int64_t n, int m) const;

    // Some of the features of a position, each of which is active wherever `anchor` is. Bit k of `members`:
    // feature k of the first position that has the anchor.
    struct Set {
        std::int32_t anchor;
        std::uint64_t members;
    };

    // [rows + pairs] What one thread remembers: the last position, plus 1, at which each was marked.
    using Marks = std::vector<std::int32_t>;
    Marks marks() const { return Marks(n_numbers(), 0); }
    std::size_t n_numbers() const { return static_cast<std::size_t>(n_rows_ + n_pairs_); }

    // Adds disjoint sets of two features or more among those of position t, the largest first.
    void add_sets(std::int64_t t, Marks& marks, std::vector<Set>& sets) const;

    // Calls function(number) for each feature of a set, or of a position.
    template <class Function>
    void each(const Set& set, const Function& function) const {
        const std::int64_t t = known_[set.anchor].first.load(std::memory_order_relaxed);
        for (std::uint64_t left = set.members; left; left &= left - 1)
            function(feature(t, __builtin_ctzll(left)));
    }
    template <class Function>
    void each(std::int64_t t, const Function& function) const {
        for (std::int64_t i = rows_.ptr[t]; i < rows_.ptr[t + 1]; ++i) function(rows_.ids[i]);
        for (std::int64_t i = pairs_.ptr[t]; i < pairs_.ptr[t + 1]; ++i)
            function(static_cast<std::int32_t>(n_rows_ + pairs_.ids[i]));
    }
    std::int64_t n_rows() const { return n_rows_; }
    std::int64_t n_positions() const { return rows_.ptr.size() - 1; }

  private:
    static constexpr std::int64_t kMostLookedAt = 64;  // features of a position: the bits of `Set::members`
    static constexpr std::int32_t kFewest = 4;         // positions of a set
    static constexpr std::int32_t kMostCounted = 255, kTwice = 1 << 30;

    struct Known {
        // Which features of the first position that has it, it implies so far.
        std::atomic<std::uint64_t> implied{~std::uint64_t(0)};
        std::atomic<std::int32_t> first{INT32_MAX};
        // How many positions have it, up to kMostCounted; kTwice where one has it twice.
        std::atomic<std::int32_t> count{0};
    };

    std::int64_t n_features(std::int64_t t) const {
        return rows_.ptr[t + 1] - rows_.ptr[t] + pairs_.ptr[t + 1] - pairs_.ptr[t];
    }
    std::int32_t feature(std::int64_t t, std::int64_t k) const {
        const std::int64_t row = rows_.ptr[t] + k;
        if (row < rows_.ptr[t + 1]) return rows_.ids[row];
        return static_cast<std::int32_t>(n_rows_ + pairs_.ids[pairs_.ptr[t] + row - rows_.ptr[t + 1]]);
    }
    bool may_anchor(const Known& feature) const;
    void count(std::int64_t t, Marks& marks);
    void start(Known& feature) const;
    void narrow(std::int64_t t, Marks& marks);

    const ActiveIds &rows_, &pairs_;
    const std::int64_t n_rows_, n_pairs_;
    std::unique_ptr<Known[]> known_;  // [rows + pairs]
    std::vector<bool> anchors_;       // whether it implies so many, and is so frequent, that a set may pay
};

}  // namespace crfkit
