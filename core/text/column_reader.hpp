// Column files: one position a line, its columns beside each other, a blank line after each sequence. The
// rules are those that crfkit.data.columns states and reads by, line by line; here whole chunks are read, on
// any thread.
//
//     ColumnForm form{…};                            // separator and comments as asked for
//     ColumnCutter cutter(form);
//     cutter.add(bytes);                             // as they come: a file in pieces, or a pipe
//     while (auto chunk = cutter.take(size)) …       // chunks of whole sequences, of about so many bytes
//     cutter.end();                                  // no more bytes: take() gives the rest
//     ColumnBlock block = read_block(*chunk, cutter.form());   // chunks in any order, side by
//     side
//
// What cannot be read throws ColumnError, without a description: whoever called reads the chunk line by line
// to say what is wrong with it, and where.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "text/row_block.hpp"

namespace crfkit {

struct ColumnError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// How columns are separated and which lines are comments. The first line that is surely a row fixes what was
// left to the file.
struct ColumnForm {
    std::string separator;  // " ": runs of blanks and tabs; empty: the first row decides
    std::string prefix;     // what a comment begins with; empty: no line is one
    bool automatic = true;  // of the lines that begin with `prefix`, those that the rule of the module names
    std::size_t n_columns = 0;  // of every row; 0 while it is not fixed
    std::string joint;          // what the columns are written with again
    std::string first_row;      // the line that fixed it

    bool is_fixed() const { return n_columns > 0; }
    void fix(std::string_view row);
    // Whether a line is a row whatever stands around it.
    bool is_sure_row(std::string_view line) const;
};

// Some sequences of a file, as they stand there.
struct ColumnChunk {
    std::string bytes;
    std::int64_t first_line = 1;  // number of its first line in the file
};

// Sequences that were read.
struct ColumnBlock {
    struct Comment {
        RowBlock::Place text;   // within rows.bytes
        std::int64_t sequence;  // which it stands before, or in
    };

    RowBlock rows;
    std::int64_t first_line = 1;
    std::vector<std::uint32_t> lines;  // [T] where a row stands, counted from first_line
    std::vector<Comment> comments;
};

// Cuts the bytes of a file into chunks of whole sequences: after a blank line that follows a sure row.
class ColumnCutter {
  public:
    explicit ColumnCutter(ColumnForm form) : form_(std::move(form)) {}

    void add(std::string_view bytes);
    void end() { ended_ = true; }
    // The next chunk of at least `size` bytes, or of all the whole sequences that are there for size = 0; all
    // that is left after end(). Nothing while no such sequence is there.
    std::optional<ColumnChunk> take(std::size_t size);
    // What was given and not yet taken.
    std::string_view left() const { return std::string_view(bytes_).substr(begin_); }
    std::int64_t next_line() const { return next_line_; }
    // Fixed from the first chunk on.
    const ColumnForm& form() const { return form_; }

  private:
    std::optional<std::size_t> find_end(std::size_t size);  // of the chunk, within left()
    bool is_sure_row(std::size_t begin, std::string_view line) const;
    void fix_form(std::string_view text);

    ColumnForm form_;
    std::string bytes_;
    std::size_t begin_ = 0;     // of what is left
    std::size_t searched_ = 0;  // so much of what is left has no end of a chunk behind `size`
    std::int64_t next_line_ = 1;
    bool ended_ = false;
};

// Moves the bytes of the chunk into the block. Throws ColumnError where they are not UTF-8, or a row has
// another number of columns: the chunk is then as it was.
ColumnBlock read_block(ColumnChunk& chunk, const ColumnForm& form);

}  // namespace crfkit
