#include "text/string_index.hpp"

#include <bit>
#include <stdexcept>

#include "base/interruption.hpp"
#include "base/key_hash.hpp"

namespace crfkit {

namespace {

std::uint32_t half(Key key) { return static_cast<std::uint32_t>(key >> 32); }

}  // namespace

StringIndexArrays index_strings(const Vocabulary& strings) {
    if (strings.blob().size() > 0xFFFFFFFFu) throw std::invalid_argument("the strings take more than 4 GiB");
    const auto n = static_cast<std::size_t>(strings.size());
    const std::size_t n_slots = std::bit_ceil(2 * n + 2);  // at most half full
    StringIndexArrays out{std::vector<std::uint32_t>(2 * n_slots), {0}};
    out.ends.reserve(n + 1);
    Pace pace;
    for (std::size_t id = 0; id < n; ++id) {
        pace.work(64);
        const std::string_view text = strings.name(static_cast<std::int32_t>(id));
        const Key key = key_of(text);
        std::size_t i = key & (n_slots - 1);
        while (out.slots[2 * i + 1] != 0) i = (i + 1) & (n_slots - 1);
        out.slots[2 * i] = half(key);
        out.slots[2 * i + 1] = static_cast<std::uint32_t>(id) + 1;
        out.ends.push_back(out.ends.back() + static_cast<std::uint32_t>(text.size()));
    }
    return out;
}

StringIndex::StringIndex(std::span<const std::uint32_t> slots, std::span<const std::uint32_t> ends,
                         std::span<const std::uint8_t> blob)
    : slots_(slots), ends_(ends), blob_(blob) {
    if (slots.size() < 2 || !std::has_single_bit(slots.size()) || ends.empty())
        throw std::invalid_argument("the sizes of the table of strings do not fit together");
}

std::uint32_t StringIndex::find(std::string_view text) const {
    const Key key = key_of(text);
    const std::size_t mask = slots_.size() / 2 - 1;
    std::size_t i = key & mask;
    for (std::size_t probes = 0; probes <= mask; ++probes, i = (i + 1) & mask) {
        const std::uint32_t next = slots_[2 * i + 1];
        if (next == 0) return absent;
        if (slots_[2 * i] != half(key) || next > size()) continue;
        if ((*this)[next - 1] == text) return next - 1;
    }
    return absent;
}

}  // namespace crfkit
