#include "text/extractor.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "base/interruption.hpp"

namespace crfkit {

namespace {

constexpr std::size_t memo_limit = std::size_t{32} << 20;  // bytes; a larger memo is forgotten
constexpr std::size_t longest_number = 24;                 // "_B" and a number

char* append(char* out, std::string_view bytes) {
    std::memcpy(out, bytes.data(), bytes.size());
    return out + bytes.size();
}

// _B-1, _B-2, … before the first position, _B+1, _B+2, … after the last.
char* append_number(char* out, std::int64_t position, std::int64_t n_positions) {
    *out++ = '_';
    *out++ = 'B';
    if (position >= 0) *out++ = '+';
    return std::to_chars(out, out + longest_number, position < 0 ? position : position - n_positions + 1).ptr;
}

}  // namespace

std::vector<std::int32_t> TemplateProgram::columns() const {
    std::vector<std::int32_t> columns;
    for (const auto& transform : transforms) {
        if (transform.column < 0) throw std::invalid_argument("a transform reads a negative column");
        columns.push_back(transform.column);
    }
    for (const auto& line : lines) {
        for (const auto& macro : line.macros) {
            if (macro.transform < 0 || macro.transform >= static_cast<std::int64_t>(transforms.size())) {
                throw std::invalid_argument("a macro names a transform that is not there");
            }
        }
    }
    if (!boundaries.empty() && boundaries.size() != transforms.size()) {
        throw std::invalid_argument("some transforms have no boundaries");
    }
    for (const auto& [before, after] : boundaries) {
        if (before.empty() || after.empty()) throw std::invalid_argument("a transform has no boundary");
    }
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    return columns;
}

std::size_t TemplateProgram::longest_boundary() const {
    std::size_t longest = longest_number;
    for (const auto& [before, after] : boundaries) {
        for (const auto& text : before) longest = std::max(longest, text.size());
        for (const auto& text : after) longest = std::max(longest, text.size());
    }
    return longest;
}

TransformMemo::TransformMemo(const TemplateProgram& program) : transforms_(program.transforms) {
    const auto columns = program.columns();
    columns_.resize(columns.size());
    for (std::size_t j = 0; j < program.transforms.size(); ++j) {
        const auto& transform = program.transforms[j];
        const std::size_t k =
            std::lower_bound(columns.begin(), columns.end(), transform.column) - columns.begin();
        places_.push_back({k, columns_[k].transforms.size()});
        if (!transform.identity) columns_[k].transforms.push_back(static_cast<std::int32_t>(j));
    }
}

std::int32_t TransformMemo::number(std::size_t k, std::string_view value, const ApplyTransform& apply) {
    auto& column = columns_[k];
    if (column.transforms.empty()) return Vocabulary::absent;
    const std::uint64_t hash = Vocabulary::hash(value);
    const std::int32_t known = column.values.find(value, hash);
    if (known != Vocabulary::absent) return known;
    std::vector<std::optional<std::string>> results;  // all of them first: `apply` may throw
    for (const std::int32_t transform : column.transforms) {
        const Transform& wanted = transforms_[static_cast<std::size_t>(transform)];
        results.push_back(is_computed(wanted.function, value)
                              ? computed(wanted.function, wanted.argument, value)
                              : apply(transform, value));
    }
    for (const auto& result : results) {
        column.results.push_back({arena_.size(), result ? static_cast<std::ptrdiff_t>(result->size()) : -1});
        if (result) arena_ += *result;
    }
    return column.values.add(value, hash);
}

std::string_view TransformMemo::result(std::int32_t transform, std::int32_t number) const {
    const auto& [k, rank] = places_[transform];
    const auto& column = columns_[k];
    const auto [begin, length] = column.results[number * column.transforms.size() + rank];
    if (length < 0) return {};
    return {arena_.data() + begin, static_cast<std::size_t>(length)};
}

std::size_t TransformMemo::n_bytes() const {
    std::size_t n = arena_.size();
    for (const auto& column : columns_) {
        n += column.results.size() * sizeof(Result) + column.values.blob().size() + column.values.size() * 24;
    }
    return n;
}

Extractor::Extractor(TemplateProgram program)
    : program_(std::move(program)),
      columns_(program_.columns()),
      longest_boundary_(program_.longest_boundary()) {}

bool Extractor::has_arc_lines() const {
    return std::any_of(program_.lines.begin(), program_.lines.end(),
                       [](const auto& line) { return line.on_arcs; });
}

std::unique_ptr<TransformMemo> Extractor::take_memo() {
    {
        const std::lock_guard lock(memos_mutex_);
        if (!memos_.empty()) {
            auto memo = std::move(memos_.back());
            memos_.pop_back();
            return memo;
        }
    }
    return std::make_unique<TransformMemo>(program_);
}

void Extractor::give_back(std::unique_ptr<TransformMemo> memo) {
    const std::lock_guard lock(memos_mutex_);
    memos_.push_back(std::move(memo));
}

std::vector<std::string_view> Extractor::values_of(const SequenceRows& rows, TransformMemo& memo,
                                                   const ApplyTransform& apply,
                                                   std::deque<std::string>& composed) const {
    if (memo.n_bytes() > memo_limit) memo = TransformMemo(program_);
    const auto n = static_cast<std::size_t>(rows.n_positions);
    std::vector<std::int32_t> numbers(n * columns_.size());
    for (std::size_t k = 0; k < columns_.size(); ++k)
        for (std::size_t i = 0; i < n; ++i)
            numbers[k * n + i] = memo.number(k, rows.cell(static_cast<std::int64_t>(i), k), apply);
    std::vector<std::string_view> values;
    values.reserve(program_.transforms.size() * n);
    for (std::size_t j = 0; j < program_.transforms.size(); ++j) {
        const Transform& transform = program_.transforms[j];
        const std::size_t k =
            std::lower_bound(columns_.begin(), columns_.end(), transform.column) - columns_.begin();
        for (std::size_t i = 0; i < n; ++i)
            values.push_back(transform.identity
                                 ? rows.cell(static_cast<std::int64_t>(i), k)
                                 : memo.result(static_cast<std::int32_t>(j), numbers[k * n + i]));
    }
    match_lexicons(n, values, composed);
    return values;
}

void Extractor::match_lexicons(std::size_t n_positions, std::vector<std::string_view>& values,
                               std::deque<std::string>& composed) const {
    std::vector<MatchState> states;
    const Transform* matched = nullptr;  // whose states these are; transforms of one lexicon mostly follow
    for (std::size_t j = 0; j < program_.transforms.size(); ++j) {
        const auto& transform = program_.transforms[j];
        if (!transform.lexicon) continue;
        const std::span<std::string_view> row(values.data() + j * n_positions, n_positions);
        if (!matched || matched->lexicon != transform.lexicon || matched->column != transform.column)
            states = transform.lexicon->match(row);
        matched = &transform;
        for (std::size_t i = 0; i < n_positions; ++i) {
            std::string state = transform.lexicon->describe(states, i, n_positions, transform.list);
            row[i] = state.empty() ? std::string_view{} : composed.emplace_back(std::move(state));
        }
    }
}

void Extractor::extract(const SequenceRows& rows, TransformMemo& memo, const ApplyTransform& apply,
                        FeatureWriter& states, FeatureWriter& arcs) const {
    std::deque<std::string> composed;
    const auto values = values_of(rows, memo, apply, composed);
    const std::int64_t n_positions = rows.n_positions;
    Pace pace;
    for (std::int64_t i = 0; i < n_positions; ++i) {
        pace.work(256 * static_cast<std::int64_t>(program_.lines.size()));
        for (const auto& line : program_.lines) {
            if (line.on_arcs && i == 0) continue;
            compose(line, i, n_positions, values, line.on_arcs ? arcs : states);
        }
        states.end_position();
        arcs.end_position();
    }
}

char* Extractor::append_boundary(char* out, std::int32_t transform, std::int64_t position,
                                 std::int64_t n_positions) const {
    if (program_.boundaries.empty()) return append_number(out, position, n_positions);
    const auto& [before, after] = program_.boundaries[transform];
    const auto& texts = position < 0 ? before : after;
    const auto distance = static_cast<std::size_t>(position < 0 ? -position : position - n_positions + 1);
    return append(out, texts[std::min(distance, texts.size()) - 1]);
}

void Extractor::compose(const TemplateLine& line, std::int64_t i, std::int64_t n_positions,
                        const std::vector<std::string_view>& values, FeatureWriter& writer) const {
    std::size_t most = line.tail.size();
    for (const auto& macro : line.macros) {
        const std::int64_t position = macro.position(i, n_positions);
        most += macro.literal.size() + longest_boundary_;
        if (position < 0 || position >= n_positions) continue;
        const std::string_view value = values[macro.transform * n_positions + position];
        if (!value.data()) return;
        most += value.size();
    }
    char* begin = writer.compose(most);
    char* end = begin;
    for (const auto& macro : line.macros) {
        const std::int64_t position = macro.position(i, n_positions);
        end = append(end, macro.literal);
        end = position < 0 || position >= n_positions
                  ? append_boundary(end, macro.transform, position, n_positions)
                  : append(end, values[macro.transform * n_positions + position]);
    }
    end = append(end, line.tail);
    if (program_.cut_at_zero) end = std::find(begin, end, '\0');
    writer.push_composed(end - begin);
}

}  // namespace crfkit
