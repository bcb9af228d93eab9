// Which number each of many keys has: a table with open addressing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "buffer.hpp"
#include "key_hash.hpp"

namespace crfkit {

class KeyIndex {
  public:
    KeyIndex() : KeyIndex(std::vector<Key>{}) {}
    // keys[i] has number i. Throws std::invalid_argument unless they ascend.
    explicit KeyIndex(std::vector<Key> keys);

    std::int64_t size() const { return static_cast<std::int64_t>(keys_.size()); }
    const std::vector<Key>& keys() const { return keys_; }

    // Calls found(number) for each key that has one, in their order.
    template <class Function>
    void each(const std::vector<Key>& keys, const Function& found) const {
        for (const Key key : keys) __builtin_prefetch(marks_.data() + first_place(key));
        for (std::size_t i = 0; i < keys.size(); i += kAhead) {
            const std::size_t n = std::min(kAhead, keys.size() - i);
            std::size_t places[kAhead];
            for (std::size_t k = 0; k < n; ++k) {
                places[k] = likely_place(keys[i + k], first_place(keys[i + k]));
                if (marks_[places[k]]) __builtin_prefetch(places_.data() + places[k]);
            }
            for (std::size_t k = 0; k < n; ++k)
                if (const std::int32_t number = find(keys[i + k], places[k]); number >= 0) found(number);
        }
    }

  private:
    struct Place {
        Key key;
        std::int32_t number;
    };
    static constexpr std::size_t kAhead = 32;
    // Most keys that are asked for have no number, and marks say so: 0 where nothing is, else a few bits of
    // the key. They are a sixteenth of the table, and mostly in a cache.
    static std::uint8_t mark(Key key) { return static_cast<std::uint8_t>(key | 1); }
    std::size_t first_place(Key key) const { return (key * 0xBF58476D1CE4E5B9u) >> shift_; }
    std::size_t next_place(std::size_t at) const {
        return (at + 1) & (static_cast<std::size_t>(marks_.size()) - 1);
    }
    // The next place with the mark of the key, or with none.
    std::size_t likely_place(Key key, std::size_t at) const {
        while (marks_[at] && marks_[at] != mark(key)) at = next_place(at);
        return at;
    }
    std::int32_t find(Key key, std::size_t at) const {
        for (; marks_[at]; at = likely_place(key, next_place(at)))
            if (places_[at].key == key) return places_[at].number;
        return -1;
    }

    std::vector<Key> keys_;
    int shift_ = 0;
    Buffer<std::uint8_t> marks_;  // a power of 2 of them, at least half of them 0
    Buffer<Place> places_;        // of the others
};

}  // namespace crfkit
