// The functions that templates apply to values, for values whose characters need no tables of Unicode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace crfkit {

// The names are those of a template's macros, %lower[0,0] for instance; crfkit.features.templates defines
// them.
enum class TextFunction {
    none,  // one that only Python computes
    lower,
    bare,
    prefix,
    suffix,
    lower_prefix,
    lower_suffix,
    bare_prefix,
    bare_suffix,
    stripped,
    stripped_prefix,
    stripped_suffix,
    shape,
    short_shape,
    digits,
    length,
    has_digit,
    has_hyphen,
    has_upper,
    is_title,
    is_upper,
    is_character,
    outside,
};

TextFunction text_function(std::string_view name);

// Whether a function of this value is computed here: all of them of ASCII, and those that only count
// characters of any text.
bool is_computed(TextFunction function, std::string_view value);

// The value of a function, nothing where it makes no feature; n is the length of prefixes and suffixes.
std::optional<std::string> computed(TextFunction function, std::int64_t n, std::string_view value);

}  // namespace crfkit
