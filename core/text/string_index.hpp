// Strings ↔ ids in arrays that a file holds and that are read where they lie, mapped or in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/vocabulary.hpp"

namespace crfkit {

// The arrays of an index. The hash of a string is the same in every process, unlike that of Vocabulary.
struct StringIndexArrays {
    std::vector<std::uint32_t> slots;  // [2 · power of two]: half of the hash, id + 1; 0: free
    std::vector<std::uint32_t> ends;   // [n + 1] string id lies at blob[ends[id] : ends[id + 1]]
};

// Throws std::invalid_argument where the strings take 4 GiB or more.
StringIndexArrays index_strings(const Vocabulary& strings);

// A view of such arrays. Whatever bytes they hold, a lookup ends and reads nothing outside of them.
class StringIndex {
  public:
    static constexpr std::uint32_t absent = 0xFFFFFFFFu;

    StringIndex() = default;
    // Throws std::invalid_argument where the sizes of the arrays do not fit together.
    StringIndex(std::span<const std::uint32_t> slots, std::span<const std::uint32_t> ends,
                std::span<const std::uint8_t> blob);

    std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size() - 1); }
    std::uint32_t find(std::string_view text) const;
    // The string with this id; empty where the arrays are damaged.
    std::string_view operator[](std::uint32_t id) const {
        const std::uint32_t begin = ends_[id], end = ends_[id + 1];
        if (begin > end || end > blob_.size()) return {};
        return {reinterpret_cast<const char*>(blob_.data()) + begin, end - begin};
    }

  private:
    std::span<const std::uint32_t> slots_, ends_;
    std::span<const std::uint8_t> blob_;
};

}  // namespace crfkit
