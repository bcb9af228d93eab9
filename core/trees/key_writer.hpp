// Keys of features that know direction and distance.
#pragma once

#include <cstdint>
#include <vector>

#include "trees/arc_features.hpp"

namespace crfkit {

// Writes keys that know direction, and where asked the distance too.
class ArcFeatures::Writer {
  public:
    // numbers: where the number of the template of each key goes; null: nowhere. `further`: so many keys more
    // than usual may come.
    Writer(Side side, std::int64_t distance, KeyList& out, std::vector<Key>* numbers = nullptr,
           std::size_t further = 0)
        : side_(side == Side::left ? 0x51ED270B0A1F39C1u : 0x2545F4914F6CDD1Du),
          distance_(extended(side_, static_cast<Key>(distance) + 1)),
          out_(out),
          end_(out.reserve(kMost + further)),
          numbers_(numbers) {}
    ~Writer() { out_.set_end(end_); }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    template <class... Values>
    void with_side(Key number, Values... values) {
        push(number, extended(joined(number, values...), side_));
    }
    template <class... Values>
    void with_distance(Key number, Values... values) {
        push(number, extended(joined(number, values...), distance_));
    }
    template <class... Values>
    void with_both(Key number, Values... values) {
        const Key key = joined(number, values...);
        push(number, extended(key, side_));
        push(number, extended(key, distance_));
    }

  private:
    static constexpr std::size_t kMost = 320;  // keys of all templates, two times kMostTags among them
    template <class... Values>
    static Key joined(Key number, Values... values) {
        Key key = number * 0xD6E8FEB86659FD93u;
        ((key = extended(key, static_cast<Key>(values))), ...);
        return key;
    }
    void push(Key number, Key key) {
        *end_++ = key;
        if (numbers_) numbers_->push_back(number);
    }
    Key side_, distance_;
    KeyList& out_;
    Key* end_;
    std::vector<Key>* const numbers_;
};

}  // namespace crfkit
