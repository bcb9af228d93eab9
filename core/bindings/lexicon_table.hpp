// Arrays of NumPy, mapped from a file or in memory, with the views of the core on them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "text/lexicon.hpp"
#include "text/string_index.hpp"

namespace crfkit {

// An index of strings in arrays that Python owns.
struct StringTable {
    StringTable(Array<std::uint32_t> slots_, Array<std::uint32_t> ends_, Array<std::uint8_t> blob_)
        : slots(std::move(slots_)),
          ends(std::move(ends_)),
          blob(std::move(blob_)),
          index(view(slots), view(ends), view(blob)) {}

    Array<std::uint32_t> slots, ends;
    Array<std::uint8_t> blob;
    StringIndex index;
};

// A lexicon in arrays that Python owns.
struct LexiconTable {
    using Numbers = Array<std::uint32_t>;

    // The arrays of LexiconArrays, in their order; throws std::invalid_argument where there are not five.
    LexiconTable(const StringTable& tokens_, std::vector<Numbers> arrays_, std::vector<std::string> lists)
        : tokens(tokens_),
          arrays(std::move(arrays_)),
          lexicon(tokens.index, part(0), part(1), part(2), part(3), part(4), std::move(lists)) {}

    std::span<const std::uint32_t> part(std::size_t k) const {
        if (arrays.size() != 5) throw std::invalid_argument("a lexicon has five arrays beside its tokens");
        return view(arrays[k]);
    }

    StringTable tokens;
    std::vector<Numbers> arrays;
    Lexicon lexicon;
};

}  // namespace crfkit
