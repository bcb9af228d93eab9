// UTF-8 for names. Lone surrogates, which Python strings may hold, travel as three bytes like any other code
// point of their range, so that every Python string has exactly one form and comes back as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace crfkit {

// Bytes that `n` code units of a Python string can take at most: UCS-1 two each, UCS-2 three, UCS-4 four.
template <class Unit>
constexpr std::size_t most_utf8_bytes(std::size_t n) {
    return n * (sizeof(Unit) == 1 ? 2 : sizeof(Unit) == 2 ? 3 : 4);
}

// Writes n code points (one per unit) and returns the end of what was written.
template <class Unit>
char* write_utf8(const Unit* units, std::size_t n, char* out) {
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t c = units[i];
        if (c < 0x80) {
            *out++ = static_cast<char>(c);
        } else if (c < 0x800) {
            *out++ = static_cast<char>(0xC0 | (c >> 6));
            *out++ = static_cast<char>(0x80 | (c & 0x3F));
        } else if (c < 0x10000) {
            *out++ = static_cast<char>(0xE0 | (c >> 12));
            *out++ = static_cast<char>(0x80 | ((c >> 6) & 0x3F));
            *out++ = static_cast<char>(0x80 | (c & 0x3F));
        } else {
            *out++ = static_cast<char>(0xF0 | (c >> 18));
            *out++ = static_cast<char>(0x80 | ((c >> 12) & 0x3F));
            *out++ = static_cast<char>(0x80 | ((c >> 6) & 0x3F));
            *out++ = static_cast<char>(0x80 | (c & 0x3F));
        }
    }
    return out;
}

bool is_ascii(std::string_view bytes);

// Whether the bytes are what write_utf8 can produce: shortest forms only, nothing above U+10FFFF.
bool is_utf8(std::string_view bytes);

}  // namespace crfkit
