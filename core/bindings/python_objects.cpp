#include "bindings/python_objects.hpp"

#include <algorithm>
#include <cmath>

namespace nb = nanobind;

namespace crfkit {

std::string shown(PyObject* object) {
    constexpr Py_ssize_t longest = 60;
    nb::object words = nb::steal(PyObject_Repr(object));
    const bool cut = words.is_valid() && PyUnicode_GET_LENGTH(words.ptr()) > longest;
    if (cut) words = nb::steal(PyUnicode_Substring(words.ptr(), 0, longest));
    if (!words.is_valid()) throw nb::python_error();
    std::string text = to_bytes(words.ptr());
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text + (cut ? "…" : "");
}

std::string described(PyObject* object) {
    const nb::object own = nb::borrow(object);  // its __repr__ may drop it from where it is
    if (object == Py_None) return "None";
    if (PyUnicode_Check(object)) return "the string " + shown(object);
    return shown(object) + " (" + Py_TYPE(object)->tp_name + ")";
}

std::string described_with_advice(PyObject* object) {
    const std::string_view type = Py_TYPE(object)->tp_name;
    const bool missing = object == Py_None ||
                         (PyFloat_Check(object) && std::isnan(PyFloat_AS_DOUBLE(object))) ||
                         type.ends_with("NAType") || type.ends_with("NaTType");
    return described(object) + (missing ? "; missing values have to be left out or replaced" : "");
}

}  // namespace crfkit
