// Numbers 0 … n − 1 with priorities that change; one of the highest, up to a factor of 2, is found in a step.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace crfkit {

// Items with priorities from `least` on are in buckets, one for each power of 2, first in, first out.
class PriorityBuckets {
  public:
    PriorityBuckets(std::size_t n, double least)
        : scale_(1 / least), priorities_(n), next_(n, kNone), before_(n, kNone), buckets_(n) {
        std::fill_n(first_, kBuckets, kNone);
        std::fill_n(last_, kBuckets, kNone);
    }
    // Whether some item has a priority of at least `least`.
    bool any() const { return filled_ != 0; }
    std::int64_t top() const { return first_[63 - std::countl_zero(filled_)]; }
    double priority(std::int64_t item) const { return priorities_[item]; }
    void change(std::int64_t item, double priority) {
        priorities_[item] = priority;
        const int bucket = bucket_of(priority);
        if (bucket == buckets_[item]) return;
        if (buckets_[item] > 0) take_out(item);
        buckets_[item] = static_cast<std::uint8_t>(bucket);
        if (bucket > 0) append(item, bucket);
    }

  private:
    static constexpr int kBuckets = 64;
    static constexpr std::int64_t kNone = -1;

    // 0: below `least`; else 1 + floor(log2(priority / least)).
    int bucket_of(double priority) const {
        const double scaled = priority * scale_;
        return scaled >= 1 ? std::min(kBuckets - 1, 1 + std::ilogb(scaled)) : 0;
    }
    void take_out(std::int64_t item) {
        const int bucket = buckets_[item];
        (before_[item] == kNone ? first_[bucket] : next_[before_[item]]) = next_[item];
        (next_[item] == kNone ? last_[bucket] : before_[next_[item]]) = before_[item];
        if (first_[bucket] == kNone) filled_ &= ~(std::uint64_t(1) << bucket);
    }
    void append(std::int64_t item, int bucket) {
        before_[item] = last_[bucket];
        next_[item] = kNone;
        (last_[bucket] == kNone ? first_[bucket] : next_[last_[bucket]]) = item;
        last_[bucket] = item;
        filled_ |= std::uint64_t(1) << bucket;
    }

    double scale_;
    std::vector<double> priorities_;
    std::vector<std::int64_t> next_, before_;
    std::vector<std::uint8_t> buckets_;
    std::int64_t first_[kBuckets], last_[kBuckets];
    std::uint64_t filled_ = 0;
};

}  // namespace crfkit
