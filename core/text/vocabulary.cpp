#include "text/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>

#include "text/utf8.hpp"

namespace crfkit {

namespace {

constexpr std::size_t smallest_table = 64;

// Names that a table of n slots takes before it grows.
std::size_t capacity(std::size_t n_slots) { return n_slots / 4 * 3; }

std::size_t slots_for(std::size_t n_names) {
    std::size_t n_slots = smallest_table;
    while (capacity(n_slots) < n_names) n_slots *= 2;
    return n_slots;
}

std::uint64_t draw_seed() {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) ^ device();
}

}  // namespace

const std::uint64_t hash_seed = draw_seed();

bool is_ascii(std::string_view bytes) {
    constexpr std::uint64_t high_bits = 0x8080808080808080;
    std::uint64_t seen = 0;
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) seen |= load64(bytes.data());
    for (const char byte : bytes) seen |= static_cast<unsigned char>(byte);
    return !(seen & high_bits);
}

// Bytes 2.. of a sequence must be 10xxxxxx; the ranges of the first two bytes rule out longer forms than
// needed.
bool is_utf8(std::string_view bytes) {
    const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
    const auto* end = p + bytes.size();
    while (p < end) {
        const unsigned first = *p++;
        if (first < 0x80) continue;
        int more;
        unsigned low = 0x80, high = 0xBF;  // what the second byte may be
        if (first >= 0xC2 && first <= 0xDF) {
            more = 1;
        } else if (first >= 0xE0 && first <= 0xEF) {
            more = 2;
            if (first == 0xE0) low = 0xA0;
        } else if (first >= 0xF0 && first <= 0xF4) {
            more = 3;
            if (first == 0xF0) low = 0x90;
            if (first == 0xF4) high = 0x8F;
        } else {
            return false;
        }
        if (end - p < more || p[0] < low || p[0] > high) return false;
        for (int i = 1; i < more; ++i) {
            if ((p[i] & 0xC0) != 0x80) return false;
        }
        p += more;
    }
    return true;
}

Vocabulary::Vocabulary() : ends_{0} { resize_table(smallest_table); }

void Vocabulary::resize_table(std::size_t n_slots) {
    slots_.assign(static_cast<std::int64_t>(n_slots), Slot{0, absent});
    mask_ = n_slots - 1;
    for (std::int32_t id = 0; id < size(); ++id) {
        const std::uint64_t h = hash(name(id));
        std::uint64_t i = h & mask_;
        while (slots_[i].id != absent) i = (i + 1) & mask_;
        slots_[i] = {half(h), id};
    }
}

std::int32_t Vocabulary::find(std::string_view wanted, std::uint64_t hash) const {
    for (std::uint64_t i = hash & mask_; slots_[i].id != absent; i = (i + 1) & mask_) {
        if (slots_[i].half_hash == half(hash) && name(slots_[i].id) == wanted) return slots_[i].id;
    }
    return absent;
}

std::int32_t Vocabulary::add(std::string_view wanted, std::uint64_t hash) {
    std::uint64_t i = hash & mask_;
    for (; slots_[i].id != absent; i = (i + 1) & mask_) {
        if (slots_[i].half_hash == half(hash) && name(slots_[i].id) == wanted) return slots_[i].id;
    }
    const std::int32_t id = size();
    if (id == std::numeric_limits<std::int32_t>::max())
        throw std::length_error("a vocabulary holds at most 2^31 − 1 names");
    arena_.insert(arena_.end(), wanted.begin(), wanted.end());
    ends_.push_back(arena_.size());
    slots_[i] = {half(hash), id};
    if (static_cast<std::size_t>(size()) > capacity(slots_.size())) resize_table(slots_.size() * 2);
    return id;
}

void Vocabulary::find_batch(std::span<const NameKey> keys, std::int32_t* ids) const {
    for (std::size_t i = 0; i < keys.size(); ++i) {
        ids[i] = guess(keys[i].hash);
        if (ids[i] != absent) prefetch_end(ids[i]);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (ids[i] != absent) prefetch_name(ids[i]);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (ids[i] != absent && name(ids[i]) != keys[i].name()) ids[i] = find(keys[i].name(), keys[i].hash);
    }
}

std::vector<std::int32_t> Vocabulary::find_all(const Vocabulary& names) const {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(names.size()));
    std::array<NameKey, batch> keys;
    for (std::int32_t first = 0; first < names.size(); first += batch) {
        const std::int32_t n = std::min(batch, names.size() - first);
        for (std::int32_t i = 0; i < n; ++i) {
            const std::string_view wanted = names.name(first + i);
            keys[i] = {wanted.data(), wanted.size(), hash(wanted)};
            prefetch_slot(keys[i].hash);
        }
        find_batch({keys.data(), static_cast<std::size_t>(n)}, ids.data() + first);
    }
    return ids;
}

std::pair<Vocabulary, std::vector<std::int32_t>> Vocabulary::keep(std::span<const std::uint8_t> keep) const {
    if (keep.size() != static_cast<std::size_t>(size())) {
        throw std::invalid_argument("the mask has " + std::to_string(keep.size()) +
                                    " entries, the vocabulary " + std::to_string(size()) + " names");
    }
    Vocabulary kept;
    kept.hash_features(feature_hash_);
    std::vector<std::int32_t> remap(keep.size(), absent);
    for (std::int32_t id = 0; id < size(); ++id) {
        if (keep[id]) remap[id] = kept.add(name(id));
    }
    return {std::move(kept), std::move(remap)};
}

Vocabulary Vocabulary::from_bytes(std::string_view blob, std::span<const std::uint32_t> lengths) {
    if (lengths.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
        throw std::invalid_argument("a vocabulary holds at most 2^31 − 1 names");
    }
    const auto total = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
    if (total != blob.size()) {
        throw std::invalid_argument("the lengths of the names add up to " + std::to_string(total) +
                                    " bytes, but " + std::to_string(blob.size()) + " are there");
    }
    const bool all_ascii = is_ascii(blob);
    Vocabulary vocabulary;
    vocabulary.arena_.reserve(blob.size());
    vocabulary.ends_.reserve(lengths.size() + 1);
    vocabulary.resize_table(slots_for(lengths.size()));
    constexpr std::size_t ahead = 16;  // names whose slots are being prefetched
    std::array<std::pair<std::string_view, std::uint64_t>, ahead> waiting;
    const auto fetch = [&](std::size_t i) {
        if (i >= lengths.size()) return;
        const std::string_view name = blob.substr(0, lengths[i]);
        blob.remove_prefix(lengths[i]);
        waiting[i % ahead] = {name, hash(name)};
        vocabulary.prefetch_slot(waiting[i % ahead].second);
    };
    for (std::size_t i = 0; i < ahead; ++i) fetch(i);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        const auto [name, hash] = waiting[i % ahead];
        fetch(i + ahead);
        if (!all_ascii && !is_utf8(name))
            throw std::invalid_argument("name " + std::to_string(i) + " of the vocabulary is not UTF-8");
        const std::int32_t id = vocabulary.add(name, hash);
        if (static_cast<std::size_t>(id) != i) {
            throw std::invalid_argument("name " + std::to_string(i) +
                                        " of the vocabulary is the same as name " + std::to_string(id));
        }
    }
    return vocabulary;
}

}  // namespace crfkit
