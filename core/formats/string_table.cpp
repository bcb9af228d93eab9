#include "formats/string_table.hpp"

#include <array>
#include <stdexcept>

#include "text/utf8.hpp"

namespace crfkit {

namespace {

constexpr std::uint32_t byte_order_mark = 0x62445371;
constexpr std::size_t head_size = 6 * 4, n_tables = 256;
constexpr std::size_t first_record = head_size + n_tables * 8;

struct Bucket {
    std::uint32_t hash = 0, offset = 0;
};

void mix(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c) {
    const auto turn = [](std::uint32_t& x, std::uint32_t& y, std::uint32_t& z, int shift) {
        x -= z;
        x ^= std::rotl(z, shift);
        z += y;
    };
    turn(a, b, c, 4), turn(b, c, a, 6), turn(c, a, b, 8);
    turn(a, b, c, 16), turn(b, c, a, 19), turn(c, a, b, 4);
}

void finish(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c) {
    const auto turn = [](std::uint32_t& x, std::uint32_t y, int shift) {
        x ^= y;
        x -= std::rotl(y, shift);
    };
    turn(c, b, 14), turn(a, c, 11), turn(b, a, 25), turn(c, b, 16);
    turn(a, c, 4), turn(b, a, 14), turn(c, b, 24);
}

// Bob Jenkins' lookup3 (2006), started at 0, of a string and its final NUL: three numbers take in twelve
// bytes at a time; the last one to twelve bytes, filled up with zeros, are mixed more thoroughly.
std::uint32_t jenkins_hash(std::string_view string) {
    std::uint32_t a, b, c;
    a = b = c = 0xDEADBEEF + static_cast<std::uint32_t>(string.size() + 1);
    const auto take_in = [&](const char* twelve) {
        a += read_u32(twelve);
        b += read_u32(twelve + 4);
        c += read_u32(twelve + 8);
    };
    for (; string.size() >= 12; string.remove_prefix(12)) {
        take_in(string.data());
        mix(a, b, c);
    }
    std::array<char, 12> last{};  // the NUL is among these zeros
    std::memcpy(last.data(), string.data(), string.size());
    take_in(last.data());
    finish(a, b, c);
    return c;
}

[[noreturn]] void complain(const char* what, const std::string& words) {
    throw std::invalid_argument(std::string("the table of ") + what + " " + words);
}

void check_text(const StringTable& strings, const char* what) {
    std::string_view rest{reinterpret_cast<const char*>(strings.bytes.data()), strings.bytes.size()};
    if (rest.find('\0') != std::string_view::npos) complain(what, "has an entry with a NUL");
    if (is_ascii(rest)) return;
    for (const std::uint32_t length : strings.lengths) {
        if (!is_utf8(rest.substr(0, length))) complain(what, "has an entry that is not UTF-8");
        rest.remove_prefix(length);
    }
}

}  // namespace

StringTableView::StringTableView(std::string_view file, std::uint32_t offset, std::uint32_t n,
                                 const char* what)
    : n_(n), what_(what) {
    if (offset > file.size() || file.size() - offset < first_record) complain(what, "lies outside the file");
    table_ = file.substr(offset);
    if (table_.substr(0, 4) != "CQDB") complain(what, "does not begin with CQDB");
    const std::uint32_t size = read_u32(table_.data() + 4);
    index_ = read_u32(table_.data() + 20);
    if (size > table_.size() || size < first_record) complain(what, "lies outside the file");
    table_ = table_.substr(0, size);
    if (read_u32(table_.data() + 12) != byte_order_mark) complain(what, "has an unknown byte order");
    if (read_u32(table_.data() + 16) != n)
        complain(what, "has " + std::to_string(read_u32(table_.data() + 16)) + " entries, the file says " +
                           std::to_string(n));
    if (n > 0 && (index_ > size || n > (size - index_) / 4)) complain(what, "has an index outside of it");
}

StringTableView::Record StringTableView::record(std::uint32_t at) const {
    const auto size = static_cast<std::uint32_t>(table_.size());
    if (at > size || size - at < 8) complain(what_, "has an entry outside of it");
    const std::uint32_t id = read_u32(table_.data() + at), length = read_u32(table_.data() + at + 4);
    const char* string = table_.data() + at + 8;
    if (id >= n_ || length == 0 || length > size - at - 8 || string[length - 1] != '\0')
        complain(what_, "has a damaged entry " + std::to_string(id));
    return {id, {string, length - 1}};
}

std::string_view StringTableView::string(std::uint32_t i) const {
    const Record found = record(read_u32(table_.data() + index_ + std::size_t{4} * i));
    if (found.id != i) complain(what_, "has a damaged entry " + std::to_string(i));
    return found.string;
}

std::optional<std::uint32_t> StringTableView::find(std::string_view wanted) const {
    const std::uint32_t hash = jenkins_hash(wanted);
    const char* reference = table_.data() + head_size + hash % n_tables * 8;
    const std::uint32_t offset = read_u32(reference), n_buckets = read_u32(reference + 4);
    if (n_buckets == 0) return std::nullopt;
    if (offset > table_.size() || n_buckets > (table_.size() - offset) / 8)
        complain(what_, "has a hash table outside of it");
    std::uint32_t place = (hash >> 8) % n_buckets;
    for (std::uint32_t step = 0; step < n_buckets; ++step) {
        const char* bucket = table_.data() + offset + std::size_t{8} * place;
        const std::uint32_t at = read_u32(bucket + 4);
        if (at == 0) return std::nullopt;
        if (read_u32(bucket) == hash) {
            const Record found = record(at);
            if (found.string == wanted) return found.id;
        }
        if (++place == n_buckets) place = 0;
    }
    return std::nullopt;
}

StringTable StringTableView::read() const {
    StringTable strings;
    strings.bytes.reserve(table_.size());
    strings.lengths.reserve(n_);
    for (std::uint32_t i = 0; i < n_; ++i) {
        const std::string_view found = string(i);
        if (found.size() >= table_.size() - strings.bytes.size()) complain(what_, "has entries that overlap");
        strings.bytes.insert(strings.bytes.end(), found.begin(), found.end());
        strings.lengths.push_back(static_cast<std::uint32_t>(found.size()));
    }
    check_text(strings, what_);
    return strings;
}

void append_string_table(std::string& file, std::span<const std::string_view> strings) {
    const std::size_t begin = file.size();
    const auto n = static_cast<std::uint32_t>(strings.size());
    file.append(first_record, '\0');
    std::array<std::vector<Bucket>, n_tables> hashed;
    std::vector<std::uint32_t> index(strings.size());
    for (std::uint32_t i = 0; i < n; ++i) {
        index[i] = static_cast<std::uint32_t>(file.size() - begin);
        append_u32(file, i);
        append_u32(file, static_cast<std::uint32_t>(strings[i].size() + 1));
        file += strings[i];
        file.push_back('\0');
        const std::uint32_t hash = jenkins_hash(strings[i]);
        hashed[hash % n_tables].push_back({hash, index[i]});
    }
    std::string head = "CQDB", references;
    for (const std::vector<Bucket>& found : hashed) {
        append_u32(references, found.empty() ? 0 : static_cast<std::uint32_t>(file.size() - begin));
        append_u32(references, static_cast<std::uint32_t>(2 * found.size()));
        std::vector<Bucket> buckets(2 * found.size());
        for (const Bucket& bucket : found) {
            std::size_t place = (bucket.hash >> 8) % buckets.size();
            while (buckets[place].offset) place = (place + 1) % buckets.size();
            buckets[place] = bucket;
        }
        for (const Bucket& bucket : buckets) {
            append_u32(file, bucket.hash);
            append_u32(file, bucket.offset);
        }
    }
    const auto index_at = n == 0 ? 0 : static_cast<std::uint32_t>(file.size() - begin);
    for (const std::uint32_t at : index) append_u32(file, at);
    for (const std::uint32_t number :
         {static_cast<std::uint32_t>(file.size() - begin), 0u, byte_order_mark, n, index_at})
        append_u32(head, number);
    file.replace(begin, first_record, head + references);
}

}  // namespace crfkit
