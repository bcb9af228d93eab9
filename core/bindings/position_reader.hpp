// Reads the positions of Python sequences: lists of strings, dicts, rows of numbers.
#pragma once

#include <functional>

#include "bindings/python_objects.hpp"
#include "text/feature_writer.hpp"

namespace crfkit {

// Values of features beyond this size overflow in single precision where they are multiplied or added up.
inline constexpr double largest_value = 1e20;

// What each form of a position means:
//   ["a", "b"]                   features a and b (any iterable of strings)
//   {"w": "Rome"}                feature w:Rome
//   {"len": 4.0}                 feature len with this value
//   {"up": True}                 feature up; False gives nothing, or among names alone the value 0
//   {"flags": ["a", "b"]}        features flags:a and flags:b
//   {"ctx": {…}}                 the features of the inner dict, their names after "ctx:"
//   {"v": NumPy row}             a row of the dense block v
//   {"v": SciPy sparse row}      features v:j with the values of the row
//   a NumPy or sparse row        the same with the block name x
//
// Python code that is not ours (an __iter__, a __float__, a finalizer) may change any object while it runs.
// Two rules keep the reader safe: a pointer into a Python string waits in the writer only while no such code
// can run (flush before), and the list that holds the string is itself held until the writer has let go of it
// (Held).
class PositionReader {
  public:
    // Thrown where a position is not plain.
    struct NotPlain {};

    PositionReader(Vocabulary& vocabulary, bool grow) : writer_(vocabulary, grow) {}
    // names_only: as python-crfsuite reads them; throws on rows of numbers.
    explicit PositionReader(NamedPositions& names, bool names_only = true)
        : writer_(names), names_only_(names_only) {}

    // Calls after(writer) behind each sequence, when nothing points into Python's memory if names are copied.
    void read_sequences(PyObject* sequences, const std::function<void(FeatureWriter&)>& after = {});
    void read_sequence(PyObject* sequence);

    // Reads a position that is plain: a list or tuple of strings, or a dict of strings, truth values, numbers
    // and lists of strings; throws NotPlain for anything else. It runs no Python code and changes no object,
    // not even a count of references, so that any thread may call it while any other one keeps the lock of
    // the interpreter. No object may change before take(). `next`, or null, is what is read after it.
    void read_plain(PyObject* position, PyObject* next);
    // What was read since the last time.
    FeatureArrays take() { return writer_.finish(); }
    void flush() { writer_.flush(); }

    // (sequence_ptr, position_ptr, ids, values or None, {block: (positions, rows)})
    nanobind::tuple finish() { return finish(writer_.finish()); }
    // The same where the names were looked up elsewhere.
    nanobind::tuple finish(FeatureArrays found);

  private:
    class Held;
    class Deeper;

    void read_position(PyObject* position, PyObject* next);
    void read_other_position(PyObject* position);
    void read_names(PyObject* list_or_tuple, PyObject* next = nullptr);
    void read_dict(PyObject* dict);
    void read_mapping(PyObject* mapping);
    void read_entry(PyObject* key, PyObject* value);
    void read_other_entry(PyObject* key, PyObject* value);
    void read_nested(PyObject* key, PyObject* mapping);
    void read_flags(PyObject* key, PyObject* list_or_tuple);
    void read_array(PyObject* key, PyObject* array);
    void read_sparse(PyObject* key, PyObject* row);
    void push_number(PyObject* key, double value);
    void push_truth(PyObject* key, bool truth);
    void push_name(PyObject* string);
    void make_ready(PyObject* string) const;
    double plain_number(PyObject* number) const;
    double finite(PyObject* number, PyObject* key);
    void let_signals_in();
    nanobind::object list_of(PyObject* iterable, const std::string& expected);
    std::string full_name(PyObject* key) const;
    std::string quoted(PyObject* key) const;
    void need_plain() const {
        if (plain_) throw NotPlain{};
    }
    [[noreturn]] void complain(const std::string& words) const;
    [[noreturn]] void complain_of(const std::string& expected, PyObject* given) const;

    FeatureWriter writer_;
    bool names_only_ = false;
    bool plain_ = false;  // nothing but plain positions is read
    std::vector<std::int64_t> sequence_ptr_{0};
    std::string prefix_;         // of the names inside a nested dict, "ctx:"
    std::int64_t position_ = 0;  // within its sequence
    nanobind::dict dense_;       // block → (list of positions, list of rows)
};

// The names of one sequence of positions without dense blocks.
NamedPositions read_named_positions(PyObject* sequence);

}  // namespace crfkit
