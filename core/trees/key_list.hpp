// Keys of features, one after the other.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/key_hash.hpp"

namespace crfkit {

// Memory is kept when it is cleared.
class KeyList {
  public:
    void clear() { size_ = 0; }
    std::size_t size() const { return size_; }
    std::span<Key> keys() { return {memory_.data(), size_}; }
    std::span<const Key> keys() const { return {memory_.data(), size_}; }

    // Memory for up to `most` further keys; those that are written there count from set_end on.
    Key* reserve(std::size_t most) {
        if (memory_.size() < size_ + most) memory_.resize(2 * (size_ + most));
        return memory_.data() + size_;
    }
    void set_end(const Key* end) { size_ = static_cast<std::size_t>(end - memory_.data()); }

  private:
    std::vector<Key> memory_;
    std::size_t size_ = 0;
};

}  // namespace crfkit
