// Which number each of many keys has: a table with open addressing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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
        for (const Key key : keys) __builtin_prefetch(places_.data() + first_place(key));
        for (const Key key : keys)
            if (const std::int32_t number = find(key); number >= 0) found(number);
    }

  private:
    struct Place {
        Key key = 0;
        std::int32_t number = -1;  // −1: nothing is here
    };
    std::size_t first_place(Key key) const { return (key * 0xBF58476D1CE4E5B9u) >> shift_; }
    std::int32_t find(Key key) const {
        for (std::size_t at = first_place(key);; at = (at + 1) & (places_.size() - 1))
            if (places_[at].number < 0 || places_[at].key == key) return places_[at].number;
    }

    std::vector<Key> keys_;
    int shift_ = 0;
    std::vector<Place> places_;  // a power of 2 of them, at least half of them empty
};

}  // namespace crfkit
