// Lists of integers, each kept once and known by its number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace crfkit {

class InternedLists {
  public:
    using List = std::span<const std::int32_t>;

    std::int32_t size() const { return static_cast<std::int32_t>(ptr_.size()) - 1; }
    // Valid until the next call of add.
    List operator[](std::int32_t id) const { return List(items_).subspan(ptr_[id], ptr_[id + 1] - ptr_[id]); }
    // The number of a list, which is the next free one if it is new. The list must not be one of ours.
    std::int32_t add(List list) {
        if (2 * (ptr_.size() + 1) > slots_.size()) grow();
        const std::size_t slot = find_slot(list);
        if (slots_[slot] < 0) {
            slots_[slot] = size();
            items_.insert(items_.end(), list.begin(), list.end());
            ptr_.push_back(static_cast<std::int64_t>(items_.size()));
        }
        return slots_[slot];
    }
    void clear() {
        items_.clear();
        ptr_.assign(1, 0);
        std::fill(slots_.begin(), slots_.end(), -1);
    }

  private:
    static std::uint64_t hash(List list) {
        std::uint64_t h = 0x9e3779b97f4a7c15u + list.size();
        for (const std::int32_t item : list) {
            h = (h ^ static_cast<std::uint32_t>(item)) * 0xbf58476d1ce4e5b9u;
            h ^= h >> 29;
        }
        return h ^ (h >> 32);
    }
    std::size_t find_slot(List list) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t slot = hash(list) & mask;
        while (slots_[slot] >= 0 && !std::ranges::equal((*this)[slots_[slot]], list))
            slot = (slot + 1) & mask;
        return slot;
    }
    void grow() {
        slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), -1);
        for (std::int32_t id = 0; id < size(); ++id) slots_[find_slot((*this)[id])] = id;
    }

    std::vector<std::int32_t> items_;
    std::vector<std::int64_t> ptr_ = {0};
    std::vector<std::int32_t> slots_;  // a power of two: numbers of lists, −1: free
};

}  // namespace crfkit
