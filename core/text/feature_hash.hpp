// Feature hashing: a feature is known by the bucket that its name falls into, so that a vocabulary has at
// most 2^bits names, and features of one bucket share their weights. The bucket is
//
//     MurmurHash3_x86_32(UTF-8 bytes of the name, seed 0) mod 2^bits
//
// (Appleby 2011), on every machine and in every version: models and encoded data sets depend on it. A bucket
// is named h20:0a3f1: its bits, and its number in hexadecimal digits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace crfkit {

inline std::uint32_t murmur3(std::string_view bytes, std::uint32_t seed) {
    constexpr std::uint32_t c1 = 0xCC9E2D51, c2 = 0x1B873593;
    const auto byte = [&](std::size_t i) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i]));
    };
    const auto mixed = [](std::uint32_t block) { return std::rotl(block * c1, 15) * c2; };
    std::uint32_t hash = seed;
    std::size_t i = 0;
    for (; i + 4 <= bytes.size(); i += 4) {  // little-endian words
        hash ^= mixed(byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16 | byte(i + 3) << 24);
        hash = std::rotl(hash, 13) * 5 + 0xE6546B64;
    }
    std::uint32_t rest = 0;
    for (std::size_t k = bytes.size(); k > i; --k) rest = rest << 8 | byte(k - 1);
    hash ^= mixed(rest) ^ static_cast<std::uint32_t>(bytes.size());
    hash = (hash ^ hash >> 16) * 0x85EBCA6B;
    hash = (hash ^ hash >> 13) * 0xC2B2AE35;
    return hash ^ hash >> 16;
}

struct FeatureHash {
    static constexpr int most_bits = 30;
    using Name = std::array<char, 12>;  // the longest one is h30:3fffffff

    int bits = 0;  // 0: features are known by their names

    std::uint32_t bucket(std::string_view feature) const {
        return murmur3(feature, 0) & ((std::uint32_t{1} << bits) - 1);
    }
    // The name of the bucket, in `out`.
    std::string_view write(std::string_view feature, Name& out) const {
        constexpr std::string_view digits = "0123456789abcdef";
        std::uint32_t number = bucket(feature);
        std::size_t n = 0;
        out[n++] = 'h';
        if (bits > 9) out[n++] = digits[static_cast<std::size_t>(bits / 10)];
        out[n++] = digits[static_cast<std::size_t>(bits % 10)];
        out[n++] = ':';
        const auto n_digits = static_cast<std::size_t>((bits + 3) / 4);
        for (std::size_t k = n_digits; k > 0; --k, number >>= 4) out[n + k - 1] = digits[number & 15];
        return {out.data(), n + n_digits};
    }
};

}  // namespace crfkit
