// Runs a feature template over sequences of rows: composes the name of every feature and looks it up.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/forks.hpp"
#include "text/feature_writer.hpp"
#include "text/lexicon.hpp"
#include "text/row_block.hpp"
#include "text/transforms.hpp"
#include "text/vocabulary.hpp"

namespace crfkit {

// What stands in a macro: the value of a column, or something computed from it.
struct Transform {
    std::int32_t column;
    bool identity;                               // the value itself
    TextFunction function = TextFunction::none;  // where the core may compute it
    std::int64_t argument = 0;
    // What is computed are tokens, and the states of their matches stand there.
    std::shared_ptr<const Lexicon> lexicon = nullptr;
    std::int32_t list = -1;  // of the lexicon; −1: all of them
};

// What the row of a macro is counted from: the current position, the first position, or the end of the
// sequence.
enum class Anchor { position, first, end };

struct Macro {
    std::string literal;  // what stands before it
    std::int32_t transform;
    std::int32_t row;  // offset from the anchor
    Anchor anchor = Anchor::position;

    std::int64_t position(std::int64_t current, std::int64_t n_positions) const {
        return row + (anchor == Anchor::position ? current : anchor == Anchor::end ? n_positions : 0);
    }
};

// What a transform gives for rows outside the sequence, by their distance from it; the last one for all that
// are farther.
struct Boundaries {
    std::vector<std::string> before;
    std::vector<std::string> after;
};

// The feature `literal value literal value … tail`; absent if one of the values is nothing.
struct TemplateLine {
    bool on_arcs;  // a feature of the arc that enters the position: none at the first position of a sequence
    std::vector<Macro> macros;
    std::string tail;
};

struct TemplateProgram {
    std::vector<Transform> transforms;
    std::vector<TemplateLine> lines;
    std::vector<Boundaries> boundaries;  // [transforms]; none: _B-1, _B-2, … and _B+1, _B+2, …
    bool cut_at_zero = false;            // a zero byte ends a feature

    // The columns that transforms read, rising. Throws std::invalid_argument where a macro names no
    // transform, a column is negative, or a transform has no boundaries while others have.
    std::vector<std::int32_t> columns() const;
    // An upper bound of the bytes of what a row outside the sequence reads.
    std::size_t longest_boundary() const;
};

// The value of a transform that the core does not compute, nothing where it makes no feature. Called once for
// each distinct value of the column that a memo meets, by whichever thread works with the memo.
using ApplyTransform =
    std::function<std::optional<std::string>(std::int32_t transform, std::string_view value)>;

// Transforms that were computed before, column by column.
class TransformMemo {
  public:
    explicit TransformMemo(const TemplateProgram& program);

    // Number of a value of the k-th column of the program; its transforms are computed when it is new. A
    // column of which none is computed has no numbers (absent).
    std::int32_t number(std::size_t k, std::string_view value, const ApplyTransform& apply);
    // A computed transform of the value with this number; its data() is null where it is nothing. Valid until
    // number().
    std::string_view result(std::int32_t transform, std::int32_t number) const;
    // What it takes in memory, roughly.
    std::size_t n_bytes() const;

  private:
    struct Result {
        std::size_t begin;
        std::ptrdiff_t length;  // −1: nothing
    };
    struct Column {
        std::vector<std::int32_t> transforms;  // those that are computed
        Vocabulary values;
        std::vector<Result> results;  // [values, transforms]
    };
    struct Place {
        std::size_t column;
        std::size_t rank;  // among the column's transforms
    };

    std::vector<Column> columns_;
    std::vector<Place> places_;          // [transforms of the program]
    std::vector<Transform> transforms_;  // the same
    std::string arena_;
};

class Extractor {
  public:
    explicit Extractor(TemplateProgram program);

    bool has_arc_lines() const;
    const std::vector<std::int32_t>& columns() const { return columns_; }

    // A memo of earlier calls that nobody uses now, or a new one. Any thread may ask.
    std::unique_ptr<TransformMemo> take_memo();
    void give_back(std::unique_ptr<TransformMemo> memo);

    // Adds the features of one sequence to both writers, and ends its positions there. Column k of the rows
    // is columns()[k].
    void extract(const SequenceRows& rows, TransformMemo& memo, const ApplyTransform& apply,
                 FeatureWriter& states, FeatureWriter& arcs) const;

  private:
    // What each transform gives at each position, [transforms, T]; data() is null where it is nothing. States
    // of matches lie in `composed`.
    std::vector<std::string_view> values_of(const SequenceRows& rows, TransformMemo& memo,
                                            const ApplyTransform& apply,
                                            std::deque<std::string>& composed) const;
    // Puts the states of matches in the place of the tokens.
    void match_lexicons(std::size_t n_positions, std::vector<std::string_view>& values,
                        std::deque<std::string>& composed) const;

    void compose(const TemplateLine& line, std::int64_t i, std::int64_t n_positions,
                 const std::vector<std::string_view>& values, FeatureWriter& writer) const;

    // Writes what a macro reads at a position outside the sequence; the byte behind it.
    char* append_boundary(char* out, std::int32_t transform, std::int64_t position,
                          std::int64_t n_positions) const;

    TemplateProgram program_;
    std::vector<std::int32_t> columns_;
    std::size_t longest_boundary_;
    ForkMutex memos_mutex_;
    std::vector<std::unique_ptr<TransformMemo>> memos_;
};

}  // namespace crfkit
