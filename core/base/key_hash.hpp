// Keys of 64 bits for texts and for features made of several of them. Two different features with the same
// key would share a weight; among ten million the chance that any two do is 3 in a million.
#pragma once

#include <cstdint>
#include <string_view>

namespace crfkit {

using Key = std::uint64_t;

// Puts a value behind what is in the key already; the order counts.
constexpr Key extended(Key key, Key value) {
    key = (key ^ value) * 0x9E3779B97F4A7C15u;
    return key ^ (key >> 29);
}

// FNV-1a, stirred at the end.
constexpr Key key_of(std::string_view text) {
    Key key = 0xCBF29CE484222325u;
    for (const char c : text) key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    return extended(key, text.size());
}

}  // namespace crfkit
