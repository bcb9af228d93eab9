// Values of many keys: a table with open addressing, sorted, in which one access to memory finds a value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "base/buffer.hpp"
#include "base/key_hash.hpp"
#include "trees/key_list.hpp"

namespace crfkit {

// Throws std::invalid_argument unless keys ascend.
inline void check_keys(std::span<const Key> keys) {
    if (keys.size() >= (std::size_t(1) << 31)) throw std::invalid_argument("there are too many keys");
    for (std::size_t i = 1; i < keys.size(); ++i)
        if (keys[i - 1] >= keys[i]) throw std::invalid_argument("keys must ascend");
}

template <class Value>
class KeyTable {
  public:
    // keys[i], which ascend, has value_of(i).
    template <class ValueOf>
    KeyTable(std::span<const Key> keys, const ValueOf& value_of) {
        n_places_ = 2 * keys.size() + 16;
        n_bits_ = std::min<std::uint64_t>(8 * n_places_, ~std::uint32_t(0));
        // The place of a key is that of its first bits, or the next one that is empty. Keys that ascend fill
        // the table from the beginning to the end, so that those in it ascend too.
        std::int64_t end = 0;
        for (const Key key : keys) end = std::max(end, first_place(key)) + 1;
        places_.assign(std::max(end, static_cast<std::int64_t>(n_places_)) + 1, Place{kNoKey, Value{}});
        bits_.assign(static_cast<std::int64_t>(n_bits_ / 64) + 1, 0);
        std::int64_t at = 0;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            at = std::max(at, first_place(keys[i]));
            places_[at++] = {keys[i], value_of(i)};
            const std::uint64_t bit = share(keys[i], n_bits_);
            bits_[static_cast<std::int64_t>(bit / 64)] |= std::uint64_t(1) << (bit % 64);
        }
    }

    // Calls found(value) for each key that has one, in their order. The keys are used up.
    template <class Function>
    void each(KeyList& list, const Function& found) const {
        const std::span<Key> keys = list.keys();
        std::size_t n = 0;
        for (const Key key : keys) {  // without branches: what a key will be, no processor can guess
            const std::uint64_t bit = share(key, n_bits_);
            keys[n] = key;
            n += (bits_[static_cast<std::int64_t>(bit / 64)] >> (bit % 64)) & 1;
        }
        for (std::size_t i = 0; i < n; ++i) __builtin_prefetch(places_.data() + first_place(keys[i]));
        for (std::size_t i = 0; i < n; ++i) {
            const Place* place = places_.data() + first_place(keys[i]);
            while (place->key < keys[i]) ++place;
            if (place->key == keys[i] && keys[i] != kNoKey) found(place->value);
        }
        list.clear();
    }

  private:
    static constexpr Key kNoKey = ~Key(0);  // of places that are empty, the last one among them
    struct Place {
        Key key;
        Value value;
    };
    // The first bits of a key as a number below n, which ascends with the keys; n is less than 2³².
    static std::uint64_t share(Key key, std::uint64_t n) { return ((key >> 32) * n) >> 32; }
    std::int64_t first_place(Key key) const { return static_cast<std::int64_t>(share(key, n_places_)); }

    std::uint64_t n_places_ = 0, n_bits_ = 0;
    Buffer<Place> places_;  // half of them are empty
    // Most keys that are asked for have no value. A bit for the first bits of each key that has one tells,
    // but for some six in a hundred, at a sixteenth of the memory.
    Buffer<std::uint64_t> bits_;
};

}  // namespace crfkit
