#include "text/transforms.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "text/utf8.hpp"

namespace crfkit {

namespace {

using enum TextFunction;

constexpr std::array<std::pair<std::string_view, TextFunction>, 22> names{{
    {"lower", lower},
    {"bare", bare},
    {"prefix", prefix},
    {"suffix", suffix},
    {"lower_prefix", lower_prefix},
    {"lower_suffix", lower_suffix},
    {"bare_prefix", bare_prefix},
    {"bare_suffix", bare_suffix},
    {"stripped", stripped},
    {"stripped_prefix", stripped_prefix},
    {"stripped_suffix", stripped_suffix},
    {"shape", shape},
    {"short_shape", short_shape},
    {"digits", digits},
    {"length", length},
    {"has_digit", has_digit},
    {"has_hyphen", has_hyphen},
    {"has_upper", has_upper},
    {"is_title", is_title},
    {"is_upper", is_upper},
    {"is_character", is_character},
    {"outside", outside},
}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper_case(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower_case(char c) { return c >= 'a' && c <= 'z'; }
bool is_punctuation(char c) {
    return c > ' ' && c < 127 && !is_digit(c) && !is_upper_case(c) && !is_lower_case(c);
}
char to_lower(char c) { return is_upper_case(c) ? static_cast<char>(c + ('a' - 'A')) : c; }

char kind(char c) { return is_digit(c) ? 'd' : is_upper_case(c) ? 'X' : is_lower_case(c) ? 'x' : c; }

// Whether a byte of UTF-8 begins a character.
bool begins(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

template <class Change>
std::string changed(std::string_view value, const Change& change) {
    std::string out(value);
    std::transform(out.begin(), out.end(), out.begin(), change);
    return out;
}

std::string in_lower_case(std::string_view value) { return changed(value, to_lower); }

// In lower case without the punctuation at both ends; what is punctuation alone stays.
std::string without_punctuation(std::string_view value) {
    const auto is_kept = [](char c) { return !is_punctuation(c); };
    const auto begin = std::find_if(value.begin(), value.end(), is_kept);
    if (begin == value.end()) return std::string(value);
    const auto end = std::find_if(value.rbegin(), value.rend(), is_kept).base();
    return in_lower_case({begin, end});
}

// The first n characters, of which there must be as many.
std::optional<std::string> first(std::string_view value, std::int64_t n) {
    for (std::size_t i = 0; i < value.size(); ++i)
        if (begins(value[i]) && n-- == 0) return std::string(value.substr(0, i));
    return n == 0 ? std::optional(std::string(value)) : std::nullopt;
}

std::optional<std::string> last(std::string_view value, std::int64_t n) {
    for (std::size_t i = value.size(); i > 0; --i)
        if (begins(value[i - 1]) && --n == 0) return std::string(value.substr(i - 1));
    return std::nullopt;
}

std::optional<std::string> flag(bool holds) {
    return holds ? std::optional(std::string(1, '1')) : std::nullopt;
}

std::string collapsed(std::string text) {
    text.erase(std::unique(text.begin(), text.end()), text.end());
    return text;
}

}  // namespace

TextFunction text_function(std::string_view name) {
    for (const auto& [known, function] : names)
        if (known == name) return function;
    return none;
}

bool is_computed(TextFunction function, std::string_view value) {
    if (function == none) return false;
    if (function == prefix || function == suffix || function == length || function == has_hyphen ||
        function == outside)
        return true;
    return is_ascii(value);
}

std::optional<std::string> computed(TextFunction function, std::int64_t n, std::string_view value) {
    const auto any = [value](bool (*holds)(char)) { return std::any_of(value.begin(), value.end(), holds); };
    switch (function) {
        case lower:
        case bare:
            return in_lower_case(value);
        case prefix:
            return first(value, n);
        case suffix:
            return last(value, n);
        case lower_prefix:
        case bare_prefix:
            return first(in_lower_case(value), n);
        case lower_suffix:
        case bare_suffix:
            return last(in_lower_case(value), n);
        case stripped:
            return without_punctuation(value);
        case stripped_prefix:
            return first(without_punctuation(value), n);
        case stripped_suffix:
            return last(without_punctuation(value), n);
        case shape:
            return changed(value, kind);
        case short_shape:
            return collapsed(changed(value, kind));
        case digits:
            return changed(value, [](char c) { return is_digit(c) ? '0' : c; });
        case length:
            return std::to_string(std::count_if(value.begin(), value.end(), begins));
        case has_digit:
            return flag(any(is_digit));
        case has_hyphen:
            return flag(value.find('-') != std::string_view::npos);
        case has_upper:
            return flag(any(is_upper_case));
        case is_title:
            return flag(!value.empty() && is_upper_case(value[0]) &&
                        std::none_of(value.begin() + 1, value.end(), is_upper_case));
        case is_upper:
            return flag(any(is_upper_case) && !any(is_lower_case));
        case is_character:  // letters of ASCII have capitals
        case outside:
        case none:
            break;
    }
    return std::nullopt;
}

}  // namespace crfkit
