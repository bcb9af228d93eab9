// What the readers of Python objects share: bytes of strings, words for complaints, arrays handed to NumPy.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/arrays.hpp"
#include "text/feature_writer.hpp"
#include "text/utf8.hpp"

namespace crfkit {

// Input that cannot be used, in one sentence; Python sees _core.InvalidInput, a ValueError.
struct InvalidInput : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline std::string at_position(std::int64_t sequence, std::int64_t position) {
    return "sequence " + std::to_string(sequence) + ", position " + std::to_string(position) + ": ";
}

// The repr of an object on one line, shortened where it is long.
std::string shown(PyObject* object);

// How an object is named in a complaint: "the string 'Rome'", "None", "4 (int)".
std::string described(PyObject* object);

// The same, and what to do where it stands for a missing value (None, NaN, pandas' NA).
std::string described_with_advice(PyObject* object);

// A str whose characters are plain bytes in place. CPython's own cached UTF-8 form is never asked for, since
// it would stay in memory beside every string that is not ASCII.
inline bool is_ascii(PyObject* string) { return PyUnicode_IS_COMPACT_ASCII(string); }

inline std::string_view ascii_bytes(PyObject* string) {
    return {static_cast<const char*>(PyUnicode_DATA(string)),
            static_cast<std::size_t>(PyUnicode_GET_LENGTH(string))};
}

// Strings of the old kind, which Python 3.11 can still meet, get their final form first.
inline void make_ready([[maybe_unused]] PyObject* string) {
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(string) < 0) throw nanobind::python_error();
#endif
}

// Bytes that the string takes as UTF-8 at most (call make_ready before, unless is_ascii).
inline std::size_t most_bytes(PyObject* string) {
    const auto n = static_cast<std::size_t>(PyUnicode_GET_LENGTH(string));
    if (PyUnicode_IS_ASCII(string)) return n;
    switch (PyUnicode_KIND(string)) {
        case PyUnicode_1BYTE_KIND:
            return most_utf8_bytes<Py_UCS1>(n);
        case PyUnicode_2BYTE_KIND:
            return most_utf8_bytes<Py_UCS2>(n);
        default:
            return most_utf8_bytes<Py_UCS4>(n);
    }
}

// Writes the string as UTF-8 and returns the end.
inline char* write_bytes(PyObject* string, char* out) {
    const auto n = static_cast<std::size_t>(PyUnicode_GET_LENGTH(string));
    const void* data = PyUnicode_DATA(string);
    if (PyUnicode_IS_ASCII(string)) {
        std::memcpy(out, data, n);
        return out + n;
    }
    switch (PyUnicode_KIND(string)) {
        case PyUnicode_1BYTE_KIND:
            return write_utf8(static_cast<const Py_UCS1*>(data), n, out);
        case PyUnicode_2BYTE_KIND:
            return write_utf8(static_cast<const Py_UCS2*>(data), n, out);
        default:
            return write_utf8(static_cast<const Py_UCS4*>(data), n, out);
    }
}

inline std::string to_bytes(PyObject* string) {
    make_ready(string);
    std::string bytes(most_bytes(string), '\0');
    bytes.resize(write_bytes(string, bytes.data()) - bytes.data());
    return bytes;
}

inline nanobind::object to_python(std::string_view bytes) {
    PyObject* string =
        PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogatepass");
    if (!string) throw nanobind::python_error();
    return nanobind::steal(string);
}

// (position_ptr, ids, values or None)
inline nanobind::tuple to_python(FeatureArrays&& arrays) {
    nanobind::object values = nanobind::none();
    if (!arrays.values.empty()) values = new_array(std::move(arrays.values));
    return nanobind::make_tuple(new_array(std::move(arrays.position_ptr)), new_array(std::move(arrays.ids)),
                                values);
}

// The items of an exact list or tuple; valid until Python code runs.
inline std::pair<PyObject* const*, Py_ssize_t> items_of(PyObject* list_or_tuple) {
    return {PySequence_Fast_ITEMS(list_or_tuple), PySequence_Fast_GET_SIZE(list_or_tuple)};
}

inline bool is_iterable(PyObject* object) { return Py_TYPE(object)->tp_iter || PySequence_Check(object); }

inline bool is_list_or_tuple(PyObject* object) {
    return PyList_CheckExact(object) || PyTuple_CheckExact(object);
}

}  // namespace crfkit
