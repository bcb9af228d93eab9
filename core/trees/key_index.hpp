// Which number each of many keys has: a table with open addressing.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "base/key_hash.hpp"

namespace crfkit {

class KeyIndex {
  public:
    KeyIndex() : KeyIndex(std::vector<Key>{}) {}
    // keys[i] has number i. Throws std::invalid_argument unless they ascend.
    explicit KeyIndex(std::vector<Key> keys) : keys_(std::move(keys)) {
        if (keys_.size() >= (std::size_t(1) << 31)) throw std::invalid_argument("there are too many keys");
        for (std::size_t i = 1; i < keys_.size(); ++i)
            if (keys_[i - 1] >= keys_[i]) throw std::invalid_argument("keys must ascend");
        int bits = 4;
        while ((std::size_t(1) << bits) < 2 * keys_.size()) ++bits;
        shift_ = 64 - bits;
        places_.assign(std::int64_t(1) << bits, Place{0, -1});
        bit_shift_ = shift_ - 3;
        bits_.assign((std::int64_t(8) << bits) / 64, 0);
        for (std::size_t i = 0; i < keys_.size(); ++i) {
            std::size_t at = first_place(keys_[i]);
            while (places_[at].number >= 0) at = next_place(at);
            places_[at] = {keys_[i], static_cast<std::int32_t>(i)};
            const std::size_t bit = stirred(keys_[i]) >> bit_shift_;
            bits_[bit / 64] |= std::uint64_t(1) << (bit % 64);
        }
    }

    std::int64_t size() const { return static_cast<std::int64_t>(keys_.size()); }
    const std::vector<Key>& keys() const { return keys_; }

    // Calls found(number) for each key that has one, in their order. The keys are used up.
    template <class Function>
    void each(std::vector<Key>& keys, const Function& found) const {
        std::size_t n = 0;
        for (const Key key : keys) {  // without branches: what a key will be, no processor can guess
            const std::size_t bit = stirred(key) >> bit_shift_;
            keys[n] = key;
            n += (bits_[bit / 64] >> (bit % 64)) & 1;
        }
        for (std::size_t i = 0; i < n; ++i) __builtin_prefetch(places_.data() + first_place(keys[i]));
        for (std::size_t i = 0; i < n; ++i)
            if (const std::int32_t number = find(keys[i]); number >= 0) found(number);
        keys.clear();
    }

  private:
    struct Place {
        Key key;
        std::int32_t number;  // −1: nothing is here
    };
    static Key stirred(Key key) { return key * 0xBF58476D1CE4E5B9u; }
    std::size_t first_place(Key key) const { return stirred(key) >> shift_; }
    std::size_t next_place(std::size_t at) const {
        return (at + 1) & (static_cast<std::size_t>(places_.size()) - 1);
    }
    std::int32_t find(Key key) const {
        for (std::size_t at = first_place(key);; at = next_place(at))
            if (places_[at].number < 0 || places_[at].key == key) return places_[at].number;
    }

    std::vector<Key> keys_;
    int shift_ = 0, bit_shift_ = 0;
    Buffer<Place> places_;  // a power of 2 of them, at least half of them empty
    // Most keys that are asked for have no number. A bit for the first bits of each key that has one tells,
    // but for some six in a hundred, at a hundredth of the memory.
    Buffer<std::uint64_t> bits_;
};

}  // namespace crfkit
