// Names ↔ ids. A name is UTF-8 bytes, its id is its rank of first occurrence.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "text/feature_hash.hpp"

namespace crfkit {

// The bytes of a name, where they lie, and their hash.
struct NameKey {
    const char* data;
    std::size_t length;
    std::uint64_t hash;

    std::string_view name() const { return {data, length}; }
};

// An open-addressing hash table (linear probing, at most 3/4 full) over names that lie one after the other in
// one arena. A slot holds half of the hash beside the id, so that nearly every probe that compares bytes
// finds them equal. Lookups of many names go step by step (prefetch_slot, then find_batch) so that the waits
// for memory overlap.
class Vocabulary {
  public:
    static constexpr std::int32_t absent = -1;
    static constexpr int batch = 128;  // names that are best looked up together

    Vocabulary();

    // throws std::invalid_argument unless `lengths` adds up to the blob and the names are distinct
    // UTF-8.
    static Vocabulary from_bytes(std::string_view blob, std::span<const std::uint32_t> lengths);

    std::int32_t size() const { return static_cast<std::int32_t>(ends_.size() - 1); }
    std::string_view blob() const { return {arena_.data(), arena_.size()}; }
    std::string_view name(std::int32_t id) const {
        return {arena_.data() + ends_[id], static_cast<std::size_t>(ends_[id + 1] - ends_[id])};
    }

    std::int32_t find(std::string_view name) const { return find(name, hash(name)); }
    std::int32_t add(std::string_view name) { return add(name, hash(name)); }
    std::int32_t find(std::string_view name, std::uint64_t hash) const;
    std::int32_t add(std::string_view name, std::uint64_t hash);  // finds it, or gives it the next id

    // The ids of names whose slots were prefetched, at most `batch` of them; absent where one is not known.
    void find_batch(std::span<const NameKey> keys, std::int32_t* ids) const;

    // The ids of all names of another one, by their ids there.
    std::vector<std::int32_t> find_all(const Vocabulary& names) const;

    // The vocabulary of the names with keep[id] != 0, in their old order, and old id → new id (absent =
    // dropped).
    std::pair<Vocabulary, std::vector<std::int32_t>> keep(std::span<const std::uint8_t> keep) const;

    // How whoever looks up features makes names here of them: see FeatureHash. It is kept by keep().
    const FeatureHash& feature_hash() const { return feature_hash_; }
    void hash_features(FeatureHash hash) { feature_hash_ = hash; }

    static std::uint64_t hash(std::string_view name);
    void prefetch_slot(std::uint64_t hash) const { __builtin_prefetch(&slots_[hash & mask_]); }

  private:
    struct Slot {
        std::uint32_t half_hash;
        std::int32_t id;
    };

    static std::uint32_t half(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
    // The id of the first name whose half hash agrees: nearly always the answer, to be confirmed by its
    // bytes.
    std::int32_t guess(std::uint64_t hash) const {
        for (std::uint64_t i = hash & mask_;; i = (i + 1) & mask_) {
            if (slots_[i].id == absent || slots_[i].half_hash == half(hash)) return slots_[i].id;
        }
    }
    void prefetch_end(std::int32_t id) const { __builtin_prefetch(&ends_[id]); }
    void prefetch_name(std::int32_t id) const { __builtin_prefetch(arena_.data() + ends_[id]); }
    void resize_table(std::size_t n_slots);

    FeatureHash feature_hash_;
    Buffer<Slot> slots_;               // a power of two
    std::uint64_t mask_ = 0;           // number of slots − 1
    std::vector<char> arena_;          // all names
    std::vector<std::uint64_t> ends_;  // [size + 1] name id lies at arena[ends[id] : ends[id + 1]]
};

// A secret of this process, so that nobody can prepare names that all fall into one slot. Ids never depend on
// it.
extern const std::uint64_t hash_seed;

inline std::uint64_t load64(const char* p) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    return word;
}

inline std::uint64_t load32(const char* p) {
    std::uint32_t word;
    std::memcpy(&word, p, sizeof word);
    return word;
}

// Both halves of the 128-bit product folded together: each input bit reaches all output bits.
inline std::uint64_t fold_multiply(std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t Vocabulary::hash(std::string_view name) {
    constexpr std::uint64_t odd1 = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
    constexpr std::uint64_t odd2 = 0xB7E151628AED2A6B;  // fraction of e
    const char* p = name.data();
    std::size_t n = name.size();
    std::uint64_t state = hash_seed ^ (n * odd1);
    for (; n > 16; n -= 16, p += 16) state = fold_multiply(load64(p) ^ odd2, load64(p + 8) ^ state);
    std::uint64_t first = 0, last = 0;  // the remaining 0..16 bytes; the two loads may overlap
    if (n >= 8) {
        first = load64(p), last = load64(p + n - 8);
    } else if (n >= 4) {
        first = load32(p), last = load32(p + n - 4);
    } else if (n > 0) {
        const auto byte = [p](std::size_t i) {
            return static_cast<std::uint64_t>(static_cast<unsigned char>(p[i]));
        };
        first = byte(0) | byte(n / 2) << 8, last = byte(n - 1);
    }
    return fold_multiply(fold_multiply(first ^ odd2, last ^ state) ^ odd1, odd2);
}

}  // namespace crfkit
