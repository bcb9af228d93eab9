#include "bindings/position_reader.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <exception>

namespace nb = nanobind;

namespace crfkit {

namespace {

constexpr const char* row_block = "x";  // the block of positions that are rows themselves
constexpr std::int64_t positions_between_signals = 1 << 16;  // how often Ctrl-C is looked for

bool has(PyObject* object, const char* attribute) { return nb::hasattr(nb::handle(object), attribute); }

bool is_number(PyObject* object) {
    const PyNumberMethods* methods = Py_TYPE(object)->tp_as_number;
    return methods && (methods->nb_float || methods->nb_index);
}

// NumPy's types are looked up once and kept.
bool is_array(PyObject* object) {
    static const nb::handle type = nb::module_::import_("numpy").attr("ndarray").inc_ref();
    return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(type.ptr()));
}

bool is_numpy_bool(PyObject* object) {
    static const nb::handle type = nb::module_::import_("numpy").attr("bool_").inc_ref();
    return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(type.ptr()));
}

// A string's header and its characters mostly lie on two cache lines. They are read once, and shall not take
// the place of the tables that are read again and again.
inline void prefetch_name(PyObject* string) {
    __builtin_prefetch(string, 0, 0);
    __builtin_prefetch(reinterpret_cast<const char*>(string) + 64, 0, 0);
}

}  // namespace

// A strong reference to a container being read. When it is the last one, letting go frees the strings inside,
// so the writer has to be done with them first. After an exception nobody asks the writer any more; one that
// was there before is not ours (a finalizer reads positions).
class PositionReader::Held {
  public:
    Held(nb::object&& object, FeatureWriter& writer) : object_(std::move(object)), writer_(writer) {}
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() noexcept(false) {
        if (Py_REFCNT(object_.ptr()) == 1 && std::uncaught_exceptions() == n_exceptions_) writer_.flush();
    }
    PyObject* ptr() const { return object_.ptr(); }

  private:
    nb::object object_;
    FeatureWriter& writer_;
    int n_exceptions_ = std::uncaught_exceptions();
};

// CPython's own limit on nesting holds for nested dicts too.
class PositionReader::Deeper {
  public:
    Deeper() {
        if (Py_EnterRecursiveCall(" while reading the features of a position")) throw nb::python_error();
    }
    ~Deeper() { Py_LeaveRecursiveCall(); }
};

void PositionReader::complain(const std::string& words) const {
    throw InvalidInput(at_position(static_cast<std::int64_t>(sequence_ptr_.size()) - 1, position_) + words);
}

void PositionReader::complain_of(const std::string& expected, PyObject* given) const {
    need_plain();
    complain("expected " + expected + ", got " + described_with_advice(given));
}

std::string PositionReader::full_name(PyObject* key) const {
    return key ? prefix_ + to_bytes(key) : row_block;
}

std::string PositionReader::quoted(PyObject* key) const { return shown(to_python(full_name(key)).ptr()); }

// The object itself when it is a plain list or tuple, else a list of our own with what it gives when
// iterated. Sets are sorted: their own order changes from process to process.
nb::object PositionReader::list_of(PyObject* iterable, const std::string& expected) {
    if (is_list_or_tuple(iterable)) return nb::borrow(iterable);
    writer_.flush();
    if (!is_iterable(iterable)) complain_of(expected, iterable);
    nb::object list = nb::steal(PySequence_List(iterable));
    if (!list.is_valid()) throw nb::python_error();
    if (PyAnySet_Check(iterable) && PyList_Sort(list.ptr()) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
        PyErr_Clear();  // entries that are no strings; whoever reads them complains
    }
    return list;
}

void PositionReader::let_signals_in() {
    writer_.flush();
    if (PyErr_CheckSignals() < 0) throw nb::python_error();
}

void PositionReader::read_sequences(PyObject* sequences, const std::function<void(FeatureWriter&)>& after) {
    const Held list(list_of(sequences, "a list of sequences"), writer_);
    for (Py_ssize_t n = 0; n < PySequence_Fast_GET_SIZE(list.ptr()); ++n) {
        {
            const Held sequence(nb::borrow(PySequence_Fast_GET_ITEM(list.ptr(), n)), writer_);
            read_sequence(sequence.ptr());
        }
        sequence_ptr_.push_back(writer_.n_positions());
        if (after) after(writer_);
    }
}

void PositionReader::read_sequence(PyObject* sequence) {
    position_ = 0;
    if (PyUnicode_Check(sequence) || PyDict_Check(sequence)) complain_of("a sequence of positions", sequence);
    const Held positions(list_of(sequence, "a sequence of positions"), writer_);
    for (; position_ < PySequence_Fast_GET_SIZE(positions.ptr()); ++position_) {
        const Held position(nb::borrow(PySequence_Fast_GET_ITEM(positions.ptr(), position_)), writer_);
        PyObject* next = nullptr;
        if (position_ + 1 < PySequence_Fast_GET_SIZE(positions.ptr()))
            next = PySequence_Fast_GET_ITEM(positions.ptr(), position_ + 1);
        read_position(position.ptr(), next);
        writer_.end_position();
        if (writer_.n_positions() % positions_between_signals == 0) let_signals_in();
    }
}

void PositionReader::read_plain(PyObject* position, PyObject* next) {
    plain_ = true;
    read_position(position, next);
    writer_.end_position();
}

void PositionReader::read_position(PyObject* position, PyObject* next) {
    if (is_list_or_tuple(position)) {
        read_names(position, next);
    } else if (PyDict_CheckExact(position)) {
        read_dict(position);
    } else {
        read_other_position(position);
    }
}

void PositionReader::read_other_position(PyObject* position) {
    need_plain();
    writer_.flush();
    if (PyUnicode_Check(position)) {
        complain("expected a list of strings or a dict, got " + described(position) +
                 "; words need a preset or a template, such as CRF(features=\"pos\"); features are a list "
                 "or a dict for each word, and [X] is written for a single sequence of these");
    }
    if (PyBytes_Check(position) || position == Py_None) complain_of("a list of strings or a dict", position);
    if (is_array(position)) {
        read_array(nullptr, position);
    } else if (PyDict_Check(position) || (!names_only_ && has(position, "items"))) {
        read_mapping(position);  // python-crfsuite knows dicts alone, and takes the keys of other mappings
    } else if (has(position, "tocsr")) {
        read_sparse(nullptr, position);
    } else {
        const Held names(list_of(position, "a list of strings or a dict"), writer_);
        read_names(names.ptr());
    }
}

// No Python code runs in this loop but for complaints, so the items stay where they are.
void PositionReader::read_names(PyObject* list_or_tuple, PyObject* next) {
    const auto [items, n] = items_of(list_or_tuple);
    const bool names_follow = next && is_list_or_tuple(next);
    const auto [next_items, n_next] = names_follow ? items_of(next) : std::pair(items, Py_ssize_t(0));
    for (Py_ssize_t i = 0; i < n_next; ++i) {
        prefetch_name(next_items[i]);
        if (i < n) push_name(items[i]);
    }
    for (Py_ssize_t i = n_next; i < n; ++i) push_name(items[i]);
}

inline void PositionReader::push_name(PyObject* string) {
    if (!PyUnicode_Check(string)) {
        need_plain();
        complain("expected strings as features, got " + described_with_advice(string) +
                 "; a feature with a value is written {'name': value}");
    }
    if (is_ascii(string)) {
        writer_.push(ascii_bytes(string));
        return;
    }
    make_ready(string);
    char* begin = writer_.compose(most_bytes(string));
    writer_.push_composed(write_bytes(string, begin) - begin);
}

void PositionReader::read_dict(PyObject* dict) {
    const Py_ssize_t size = PyDict_GET_SIZE(dict);
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &position, &key, &value)) {
        read_entry(key, value);
        if (PyDict_GET_SIZE(dict) != size) complain("the dict changed its size while it was read");
    }
}

void PositionReader::read_mapping(PyObject* mapping) {
    writer_.flush();
    const nb::object items = nb::steal(PyMapping_Items(mapping));
    if (!items.is_valid()) throw nb::python_error();
    for (nb::handle item : items) {
        if (!PyTuple_Check(item.ptr()) || PyTuple_GET_SIZE(item.ptr()) != 2)
            complain_of("pairs of key and value", item.ptr());
        read_entry(PyTuple_GET_ITEM(item.ptr(), 0), PyTuple_GET_ITEM(item.ptr(), 1));
    }
}

// Names from dicts are composed in the writer's memory, or copied, so no pointer into a key or value is left
// behind.
void PositionReader::read_entry(PyObject* key, PyObject* value) {
    if (!PyUnicode_Check(key)) complain_of("strings as names of features", key);
    make_ready(key);
    if (PyUnicode_CheckExact(value)) {
        make_ready(value);
        char* begin = writer_.compose(prefix_.size() + most_bytes(key) + 1 + most_bytes(value));
        char* end = write_bytes(key, std::copy(prefix_.begin(), prefix_.end(), begin));
        *end++ = ':';
        writer_.push_composed(write_bytes(value, end) - begin);
    } else if (PyBool_Check(value)) {
        push_truth(key, value == Py_True);
    } else if (PyFloat_CheckExact(value) || PyLong_CheckExact(value)) {
        push_number(key, finite(value, key));
    } else if (is_list_or_tuple(value)) {
        read_flags(key, value);
    } else {
        need_plain();
        const nb::object own_key = nb::borrow(key), own_value = nb::borrow(value);
        read_other_entry(key, value);
    }
}

void PositionReader::read_other_entry(PyObject* key, PyObject* value) {
    const auto expected = [&] {
        return "a string, a number, a list of strings, a dict or a row as the value of " + quoted(key);
    };
    writer_.flush();
    if (PyUnicode_Check(value)) {
        read_flags(key, nb::make_tuple(nb::handle(value)).ptr());
    } else if (PyDict_Check(value)) {
        read_nested(key, value);
    } else if (is_array(value) && nb::cast<int>(nb::handle(value).attr("ndim")) > 0) {
        read_array(key, value);
    } else if (is_numpy_bool(value)) {
        push_truth(key, PyObject_IsTrue(value));
    } else if (has(value, "tocsr")) {
        read_sparse(key, value);
    } else if (has(value, "items")) {
        read_nested(key, value);
    } else if (is_number(value)) {
        push_number(key, finite(value, key));
    } else if (PyBytes_Check(value) || !is_iterable(value)) {
        complain_of(expected(), value);
    } else {
        read_flags(key, list_of(value, "strings").ptr());
    }
}

void PositionReader::read_nested(PyObject* key, PyObject* mapping) {
    const Deeper deeper;
    const std::size_t outer = prefix_.size();
    prefix_ += to_bytes(key) + ":";
    if (PyDict_CheckExact(mapping)) {
        read_dict(mapping);
    } else {
        read_mapping(mapping);
    }
    prefix_.resize(outer);
}

void PositionReader::read_flags(PyObject* key, PyObject* list_or_tuple) {
    const auto [items, n] = items_of(list_or_tuple);
    for (Py_ssize_t i = 0; i < n; ++i) {
        if (!PyUnicode_Check(items[i])) {
            need_plain();
            complain_of("strings in the list of " + quoted(key), items[i]);
        }
        make_ready(items[i]);
        char* begin = writer_.compose(prefix_.size() + most_bytes(key) + 1 + most_bytes(items[i]));
        char* end = write_bytes(key, std::copy(prefix_.begin(), prefix_.end(), begin));
        *end++ = ':';
        writer_.push_composed(write_bytes(items[i], end) - begin);
    }
}

void PositionReader::push_number(PyObject* key, double value) {
    if (writer_.copies() && prefix_.empty() && is_ascii(key)) return writer_.push(ascii_bytes(key), value);
    char* begin = writer_.compose(prefix_.size() + most_bytes(key));
    char* end = write_bytes(key, std::copy(prefix_.begin(), prefix_.end(), begin));
    writer_.push_composed(end - begin, value);
}

// For names alone, False is the number 0, as in python-crfsuite: training then has a weight for the
// attribute.
void PositionReader::push_truth(PyObject* key, bool truth) {
    if (truth || names_only_) push_number(key, truth ? 1.0 : 0.0);
}

// Strings of the old kind change when they are made ready.
void PositionReader::make_ready([[maybe_unused]] PyObject* string) const {
#if PY_VERSION_HEX < 0x030C0000
    if (!PyUnicode_IS_READY(string)) need_plain();
#endif
    crfkit::make_ready(string);
}

// Of a float or an int; PyFloat_AsDouble asks for the state of the interpreter's thread.
double PositionReader::plain_number(PyObject* number) const {
    int overflow = 0;
    const double value = PyFloat_CheckExact(number)
                             ? PyFloat_AS_DOUBLE(number)
                             : static_cast<double>(PyLong_AsLongLongAndOverflow(number, &overflow));
    if (overflow || !(std::abs(value) <= largest_value)) need_plain();
    return value;
}

double PositionReader::finite(PyObject* number, PyObject* key) {
    if (plain_) return plain_number(number);
    const double value = PyFloat_AsDouble(number);
    const bool failed = value == -1.0 && PyErr_Occurred();
    if (failed && !PyErr_ExceptionMatches(PyExc_OverflowError)) throw nb::python_error();
    if (failed) PyErr_Clear();
    if (failed || !(std::abs(value) <= largest_value)) {
        complain("feature " + quoted(key) + " has the value " + described(number) +
                 "; expected a finite number, at most 1e20 in size" +
                 (std::isnan(value) ? ": leave the feature out where it has none" : ""));
    }
    return value;
}

// Numbers go to a dense block as they are; strings are features. A position that is a row itself has no key.
void PositionReader::read_array(PyObject* key, PyObject* array) {
    writer_.flush();
    const nb::handle row(array);
    if (nb::cast<int>(row.attr("ndim")) != 1) complain_of("one row of block " + quoted(key), array);
    const std::string kind = nb::cast<std::string>(row.attr("dtype").attr("kind"));
    if (kind == "U" || kind == "O") {
        const Held names(row.attr("tolist")(), writer_);
        return key ? read_flags(key, names.ptr()) : read_names(names.ptr());
    }
    if (names_only_) complain_of("strings as features", array);  // names only
    const nb::object block = to_python(full_name(key));
    if (!dense_.contains(block)) dense_[block] = nb::make_tuple(nb::list(), nb::list());
    const nb::object entry = dense_[block];
    entry[0].attr("append")(writer_.n_positions());
    entry[1].attr("append")(row);
}

void PositionReader::read_sparse(PyObject* key, PyObject* row) {
    writer_.flush();
    const nb::object csr = nb::handle(row).attr("tocsr")();
    const nb::object shape = csr.attr("shape");
    if (nb::len(shape) == 2 && nb::cast<std::int64_t>(shape[0]) != 1)
        complain_of("one row of block " + quoted(key), row);
    const nb::list columns(csr.attr("indices").attr("tolist")()), values(csr.attr("data").attr("tolist")());
    const std::string block = full_name(key) + ":";
    for (std::size_t k = 0; k < nb::len(columns); ++k) {
        const std::string name = block + std::to_string(nb::cast<std::int64_t>(columns[k]));
        const nb::object value = values[k];
        const double number = finite(value.ptr(), key);
        std::copy(name.begin(), name.end(), writer_.compose(name.size()));
        writer_.push_composed(name.size(), number);
    }
}

NamedPositions read_named_positions(PyObject* sequence) {
    NamedPositions names;
    PositionReader(names).read_sequence(sequence);
    return names;
}

nb::tuple PositionReader::finish(FeatureArrays found) {
    const nb::object sequence_ptr = new_array(std::move(sequence_ptr_));
    const nb::tuple lists = to_python(std::move(found));
    return nb::make_tuple(sequence_ptr, lists[0], lists[1], lists[2], dense_);
}

}  // namespace crfkit
