#include "text/column_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/interruption.hpp"
#include "text/utf8.hpp"

namespace crfkit {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view blanks = " \t";

bool is_blank(std::string_view line) { return line.find_first_not_of(blanks) == std::string_view::npos; }

std::string_view without_return(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

// The line that begins at `begin`, without its end; `next` is where the line after it begins.
std::string_view line_at(std::string_view text, std::size_t begin, std::size_t& next) {
    const std::size_t end = text.find('\n', begin);
    next = end == std::string_view::npos ? text.size() : end + 1;
    return without_return(text.substr(begin, (end == std::string_view::npos ? text.size() : end) - begin));
}

// Files hold no lone surrogates, which names of features may have: ED A0 80 … ED BF BF.
bool is_strict_utf8(std::string_view bytes) {
    if (!is_utf8(bytes)) return false;
    for (std::size_t i = bytes.find('\xED'); i != std::string_view::npos; i = bytes.find('\xED', i + 1))
        if (static_cast<unsigned char>(bytes[i + 1]) >= 0xA0) return false;
    return true;
}

// "# key = value": `# *[^ \t=]+ = `.
bool is_key_value(std::string_view line) {
    if (!line.starts_with('#')) return false;
    const std::size_t key = line.find_first_not_of(' ', 1);
    if (key == std::string_view::npos) return false;
    const std::size_t end = line.find_first_of(" \t=", key);
    return end != key && end != std::string_view::npos && line.substr(end).starts_with(" = ");
}

// Calls take(begin, length) for each column of a line.
template <class Take>
void split(std::string_view line, const std::string& separator, const Take& take) {
    if (separator == " ") {
        for (std::size_t i = 0; i < line.size();) {
            if (line[i] == ' ' || line[i] == '\t') {
                ++i;
                continue;
            }
            const std::size_t begin = i;
            while (i < line.size() && line[i] != ' ' && line[i] != '\t') ++i;
            take(begin, i - begin);
        }
        return;
    }
    std::size_t begin = 0;
    for (;;) {
        const std::size_t end =
            separator.size() == 1 ? line.find(separator[0], begin) : line.find(separator, begin);
        if (end == std::string_view::npos) break;
        take(begin, end - begin);
        begin = end + separator.size();
    }
    take(begin, line.size() - begin);
}

std::size_t count_columns(std::string_view line, const std::string& separator) {
    std::size_t n = 0;
    split(line, separator, [&](std::size_t, std::size_t) { ++n; });
    return n;
}

bool is_comment(std::string_view line, const ColumnForm& form, bool inside) {
    if (!form.automatic) return true;
    if (inside) return false;
    return count_columns(line, form.separator) != form.n_columns || is_key_value(line);
}

}  // namespace

void ColumnForm::fix(std::string_view row) {
    const bool tab = row.find('\t') != std::string_view::npos;
    if (separator.empty()) separator = tab ? "\t" : " ";
    joint = separator == " " && tab ? "\t" : separator;
    n_columns = count_columns(row, separator);
    first_row = row;
}

bool ColumnForm::is_sure_row(std::string_view line) const {
    return !is_blank(line) && (prefix.empty() || !line.starts_with(prefix));
}

void ColumnCutter::add(std::string_view bytes) {
    if (begin_ > bytes_.size() / 2) {
        bytes_.erase(0, begin_);
        begin_ = 0;
    }
    bytes_ += bytes;
}

void ColumnCutter::fix_form(std::string_view text) {
    if (next_line_ == 1 && text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    for (std::size_t begin = 0, next; begin < text.size(); begin = next) {
        const std::string_view line = line_at(text, begin, next);
        if (form_.is_sure_row(line)) return form_.fix(line);
    }
}

// Of a line that begins at this place of what is left.
bool ColumnCutter::is_sure_row(std::size_t begin, std::string_view line) const {
    if (begin == 0 && next_line_ == 1 && line.starts_with(byte_order_mark))
        line.remove_prefix(byte_order_mark.size());
    return form_.is_sure_row(line);
}

std::optional<std::size_t> ColumnCutter::find_end(std::size_t size) {
    const std::string_view text = left();
    if (size == 0) {  // the last end
        std::size_t end = text.rfind('\n');
        while (end != std::string_view::npos && end > 0) {  // of the line that ends here
            const std::size_t before = text.rfind('\n', end - 1);
            if (before == std::string_view::npos) return std::nullopt;
            const std::size_t first = before == 0 ? std::string_view::npos : text.rfind('\n', before - 1);
            const std::size_t begin = first == std::string_view::npos ? 0 : first + 1;
            if (is_blank(without_return(text.substr(before + 1, end - before - 1))) &&
                is_sure_row(begin, without_return(text.substr(begin, before - begin))))
                return end + 1;
            end = before;
        }
        return std::nullopt;
    }
    if (text.size() < size) return std::nullopt;  // the first end behind `size`
    std::size_t begin = std::max(size, searched_);
    begin = text.rfind('\n', begin - 1);
    begin = begin == std::string_view::npos ? 0 : begin + 1;
    bool after_row = false;
    for (std::size_t next; begin < text.size(); begin = next) {
        const std::string_view line = line_at(text, begin, next);
        if (next == text.size() && text.back() != '\n') break;  // the line has not ended
        if (after_row && next >= size && is_blank(line)) return next;
        after_row = is_sure_row(begin, line);
        searched_ = begin;  // the search goes on with this line
    }
    return std::nullopt;
}

std::optional<ColumnChunk> ColumnCutter::take(std::size_t size) {
    std::optional<std::size_t> end = find_end(size);
    if (!end && ended_ && begin_ < bytes_.size()) end = bytes_.size() - begin_;
    if (!end) return std::nullopt;
    ColumnChunk chunk{bytes_.substr(begin_, *end), next_line_};
    begin_ += *end;
    searched_ = 0;
    if (!form_.is_fixed()) fix_form(chunk.bytes);
    next_line_ += std::count(chunk.bytes.begin(), chunk.bytes.end(), '\n');
    return chunk;
}

ColumnBlock read_block(ColumnChunk& chunk, const ColumnForm& form) {
    ColumnBlock block;
    block.first_line = chunk.first_line;
    RowBlock& rows = block.rows;
    rows.n_columns = form.n_columns;
    const std::string_view text = chunk.bytes;
    RowBlock::check_size(text.size());
    if (!is_ascii(text) && !is_strict_utf8(text)) throw ColumnError("the text is not UTF-8");
    std::size_t begin =
        chunk.first_line == 1 && text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
    std::int64_t first = 0;  // position of the sequence that is read
    std::uint32_t number = 0;
    const auto n_positions = [&] { return static_cast<std::int64_t>(block.lines.size()); };
    Pace pace;
    for (std::size_t next; begin < text.size(); begin = next, ++number) {
        const std::string_view line = line_at(text, begin, next);
        pace.work(64);
        const bool inside = n_positions() > first;
        if (is_blank(line)) {
            if (inside) rows.sequence_ptr.push_back(first = n_positions());
        } else if (!form.prefix.empty() && line.starts_with(form.prefix) && is_comment(line, form, inside)) {
            block.comments.push_back(
                {{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(line.size())},
                 rows.n_sequences()});
        } else {
            split(line, form.separator, [&](std::size_t from, std::size_t length) {
                rows.cells.push_back(
                    {static_cast<std::uint32_t>(begin + from), static_cast<std::uint32_t>(length)});
            });
            block.lines.push_back(number);
            if (rows.cells.size() != block.lines.size() * form.n_columns)
                throw ColumnError("a row has another number of columns than the first one");
        }
    }
    if (n_positions() > first) rows.sequence_ptr.push_back(n_positions());
    rows.bytes = std::move(chunk.bytes);
    return block;
}

}  // namespace crfkit
