// Reads Python sequences of rows (words, or tuples of columns) for a template.
#pragma once

#include "bindings/python_objects.hpp"
#include "text/extractor.hpp"

namespace crfkit {

// The bytes of every cell are copied before any Python code can run, so nothing points into Python's memory.
class RowReader {
  public:
    // All rows must have as many columns as those of training, or while training as the first one.
    // `more_columns`: each row may have more than `n_trained`, which are not read.
    RowReader(const Extractor& extractor, nanobind::handle template_, std::optional<std::int64_t> n_trained,
              bool more_columns)
        : extractor_(extractor),
          template_(template_),
          trained_(n_trained.has_value()),
          more_columns_(more_columns && trained_),
          n_columns_(n_trained) {}

    // Calls `done(cells)` for each sequence.
    template <class Done>
    void read_sequences(PyObject* sequences, const Done& done) {
        const nanobind::object list = list_of(sequences, "a list of sequences");
        for (; sequence_ < PySequence_Fast_GET_SIZE(list.ptr()); ++sequence_) {
            const nanobind::object sequence =
                nanobind::borrow(PySequence_Fast_GET_ITEM(list.ptr(), sequence_));
            read_sequence(sequence.ptr());
            done(static_cast<const Cells&>(cells_));
        }
    }
    std::optional<std::int64_t> n_columns() const { return n_columns_; }

  private:
    void read_sequence(PyObject* sequence);
    void read_row(PyObject* row);
    void read_cells(PyObject* const* values, std::int64_t n);
    nanobind::object list_of(PyObject* iterable, const char* expected) const;
    [[noreturn]] void complain(const std::string& words) const;

    const Extractor& extractor_;
    nanobind::handle template_;
    bool trained_;       // the number of columns comes from training, not from the first row
    bool more_columns_;  // n_columns_ is the least number that a row may have
    std::optional<std::int64_t> n_columns_;
    Cells cells_;
    std::int64_t sequence_ = 0;
    std::int64_t position_ = 0;
};

}  // namespace crfkit
