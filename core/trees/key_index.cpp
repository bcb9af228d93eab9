#include "trees/key_index.hpp"

#include <stdexcept>
#include <utility>

namespace crfkit {

KeyIndex::KeyIndex(std::vector<Key> keys) : keys_(std::move(keys)) {
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

}  // namespace crfkit
