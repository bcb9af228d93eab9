// CRFsuite's tables of strings ("CQDB"), which its model files hold two of: labels and attributes.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace crfkit {

// Little-endian numbers at any address.
inline std::uint32_t read_u32(const char* bytes) {
    std::uint32_t number;
    std::memcpy(&number, bytes, sizeof number);
    if constexpr (std::endian::native == std::endian::big) number = __builtin_bswap32(number);
    return number;
}

inline void append_u32(std::string& out, std::uint32_t number) {
    if constexpr (std::endian::native == std::endian::big) number = __builtin_bswap32(number);
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// A table is, with offsets counted from its first byte:
//
//   "CQDB", size, flag = 0, byte order mark, n, offset of the index     6 × u32; no index where n is 0
//   (offset, n_buckets) of each of 256 hash tables                      512 × u32
//   records: id, length of the string with its final NUL, the string    u32, u32, bytes
//   hash tables: (hash, offset of the record); (0, 0): free             pairs of u32
//   index: offset of the record of string 0, 1, …                       n × u32
//
// A string with hash h is in hash table h mod 256, in the first free bucket from (h / 256) mod n_buckets on;
// n_buckets is twice the number of strings there.

struct StringTable {
    std::vector<std::uint8_t> bytes;     // of all strings, one after the other, without final NULs
    std::vector<std::uint32_t> lengths;  // [n]
};

// A table inside a file, read where it lies: strings are checked when they are asked for. All methods throw
// std::invalid_argument where what they read lies outside the table or is damaged.
class StringTableView {
  public:
    // The table of n strings at `offset` of a file, which must outlive it; error messages call it `what`.
    StringTableView(std::string_view file, std::uint32_t offset, std::uint32_t n, const char* what);

    std::uint32_t size() const { return n_; }
    // String i, without its final NUL.
    std::string_view string(std::uint32_t i) const;
    // The number of a string, found through the hash tables as CRFsuite finds it.
    std::optional<std::uint32_t> find(std::string_view string) const;
    // All strings. Throws unless they are together no longer than the table, and UTF-8 without a NUL.
    StringTable read() const;

  private:
    struct Record {
        std::uint32_t id;
        std::string_view string;
    };
    Record record(std::uint32_t at) const;

    std::string_view table_;
    std::uint32_t n_, index_;
    const char* what_;
};

void append_string_table(std::string& file, std::span<const std::string_view> strings);

}  // namespace crfkit
