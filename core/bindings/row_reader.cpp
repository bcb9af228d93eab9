#include "bindings/row_reader.hpp"

namespace nb = nanobind;

namespace crfkit {

void RowReader::complain(const std::string& words) const {
    throw InvalidInput(at_position(sequence_, position_) + words);
}

nb::object RowReader::list_of(PyObject* iterable, const char* expected) const {
    if (is_list_or_tuple(iterable)) return nb::borrow(iterable);
    const bool dict = PyDict_Check(iterable);
    if (dict || PyUnicode_Check(iterable) || PyBytes_Check(iterable) || !is_iterable(iterable)) {
        complain(std::string("expected ") + expected + ", got " + described_with_advice(iterable) +
                 (dict ? "; dicts of features need CRF(features=None)" : ""));
    }
    nb::object list = nb::steal(PySequence_List(iterable));
    if (!list.is_valid()) throw nb::python_error();
    return list;
}

void RowReader::read_sequence(PyObject* sequence) {
    position_ = 0;
    cells_.clear();
    const nb::object rows = list_of(sequence, "a list of words or rows");
    for (; position_ < PySequence_Fast_GET_SIZE(rows.ptr()); ++position_) {
        const nb::object row = nb::borrow(PySequence_Fast_GET_ITEM(rows.ptr(), position_));
        read_row(row.ptr());
    }
    cells_.n_positions = static_cast<std::size_t>(position_);
}

void RowReader::read_row(PyObject* row) {
    if (PyUnicode_Check(row)) return read_cells(&row, 1);
    const nb::object columns = list_of(row, "a word or a tuple of columns");
    const auto [values, n] = items_of(columns.ptr());
    read_cells(values, n);
}

void RowReader::read_cells(PyObject* const* values, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) {
        if (!PyUnicode_Check(values[k]))
            complain("expected strings as columns, got " + described_with_advice(values[k]));
    }
    if (n_columns_ && (more_columns_ ? n < *n_columns_ : n != *n_columns_)) {
        complain("the row has " + std::to_string(n) + (n == 1 ? " column" : " columns") + ", expected " +
                 (more_columns_ ? "at least " : "") + std::to_string(*n_columns_) +
                 (more_columns_ ? ""
                  : trained_    ? " as in training"
                                : " as in the rows before"));
    }
    for (const std::int32_t column : extractor_.columns()) {
        if (column >= n) break;
        PyObject* value = values[column];
        make_ready(value);
        const std::size_t begin = cells_.bytes.size();
        cells_.bytes.resize(begin + most_bytes(value));
        cells_.bytes.resize(write_bytes(value, cells_.bytes.data() + begin) - cells_.bytes.data());
        cells_.ends.push_back(cells_.bytes.size());
    }
    if (!n_columns_) {
        n_columns_ = n;
        template_.attr("check_columns")(n);
    }
}

}  // namespace crfkit
