// Features by template, from rows of strings.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "bindings/bindings.hpp"
#include "bindings/lexicon_table.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/python_objects.hpp"
#include "text/extractor.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

namespace {

std::int32_t integer(nb::handle value) { return nb::cast<std::int32_t>(value); }

std::string text(nb::handle value) { return to_bytes(value.ptr()); }

Anchor anchor_of(nb::handle name) {
    const std::string known = text(name);
    if (known == "first") return Anchor::first;
    if (known == "end") return Anchor::end;
    if (known == "position") return Anchor::position;
    throw nb::value_error("a macro has an anchor that is not position, first or end");
}

std::vector<std::string> texts(nb::handle values) {
    std::vector<std::string> out;
    for (nb::handle value : values) out.push_back(text(value));
    return out;
}

// The lexicons that transforms read; the template keeps them alive.
void find_lexicons(nb::handle source, const std::vector<bool>& reads_lexicon, TemplateProgram& program) {
    for (std::size_t j = 0; j < program.transforms.size(); ++j) {
        if (!reads_lexicon[j]) continue;
        const nb::object found = source.attr("lexicon")(j);
        const auto [table, list] = nb::cast<std::pair<nb::object, std::int32_t>>(found);
        program.transforms[j].lexicon = &nb::cast<const LexiconTable&>(table).lexicon;
        program.transforms[j].list = list;
    }
}

// Plain arcs (a B line without macros) are weights of the model, not features, and are left out.
TemplateProgram program_of(nb::handle source) {
    const nb::object program = source.attr("program")();
    TemplateProgram out;
    std::vector<bool> reads_lexicon;
    for (nb::handle transform : program.attr("transforms")) {
        const std::string function = text(nb::object(transform.attr("function")));
        out.transforms.push_back({integer(transform.attr("column")), function == "x"});
        reads_lexicon.push_back(function == "in");
    }
    for (nb::handle line : program.attr("lines")) {
        TemplateLine read{to_bytes(nb::object(line.attr("kind")).ptr()) == "B",
                          {},
                          to_bytes(nb::object(line.attr("tail")).ptr())};
        for (nb::handle macro : line.attr("macros")) {
            read.macros.push_back({to_bytes(nb::object(macro.attr("literal")).ptr()),
                                   integer(macro.attr("transform")), integer(macro.attr("row")),
                                   anchor_of(nb::object(macro.attr("anchor")))});
        }
        if (!read.on_arcs || !read.macros.empty()) out.lines.push_back(std::move(read));
    }
    for (nb::handle boundaries : program.attr("boundaries")) {
        out.boundaries.push_back(
            {texts(nb::object(boundaries.attr("before"))), texts(nb::object(boundaries.attr("after")))});
    }
    out.cut_at_zero = nb::cast<bool>(program.attr("cut_at_zero"));
    find_lexicons(source, reads_lexicon, out);
    return out;
}

// Reads Python sequences of rows (words, or tuples of columns) for a template. The bytes of every cell are
// copied before any Python code can run, so nothing points into Python's memory.
class RowReader {
  public:
    // All rows must have as many columns as those of training, or while training as the first one.
    // `more_columns`: each row may have more than `n_trained`, which are not read.
    RowReader(const Extractor& extractor, nb::handle template_, std::optional<std::int64_t> n_trained,
              bool more_columns)
        : extractor_(extractor),
          template_(template_),
          trained_(n_trained.has_value()),
          more_columns_(more_columns && trained_),
          n_columns_(n_trained) {}

    // Calls `done(cells)` for each sequence.
    template <class Done>
    void read_sequences(PyObject* sequences, const Done& done) {
        const nb::object list = list_of(sequences, "a list of sequences");
        for (; sequence_ < PySequence_Fast_GET_SIZE(list.ptr()); ++sequence_) {
            const nb::object sequence = nb::borrow(PySequence_Fast_GET_ITEM(list.ptr(), sequence_));
            read_sequence(sequence.ptr());
            done(static_cast<const Cells&>(cells_));
        }
    }
    std::optional<std::int64_t> n_columns() const { return n_columns_; }

  private:
    void read_sequence(PyObject* sequence) {
        position_ = 0;
        cells_.clear();
        const nb::object rows = list_of(sequence, "a list of words or rows");
        for (; position_ < PySequence_Fast_GET_SIZE(rows.ptr()); ++position_) {
            const nb::object row = nb::borrow(PySequence_Fast_GET_ITEM(rows.ptr(), position_));
            read_row(row.ptr());
        }
        cells_.n_positions = static_cast<std::size_t>(position_);
    }

    void read_row(PyObject* row) {
        if (PyUnicode_Check(row)) return read_cells(&row, 1);
        const nb::object columns = list_of(row, "a word or a tuple of columns");
        const auto [values, n] = items_of(columns.ptr());
        read_cells(values, n);
    }

    void read_cells(PyObject* const* values, std::int64_t n) {
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

    nb::object list_of(PyObject* iterable, const char* expected) const {
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

    void complain(const std::string& words) const {
        throw InvalidInput(at_position(sequence_, position_) + words);
    }

    const Extractor& extractor_;
    nb::handle template_;
    bool trained_;       // the number of columns comes from training, not from the first row
    bool more_columns_;  // n_columns_ is the least number that a row may have
    std::optional<std::int64_t> n_columns_;
    Cells cells_;
    std::int64_t sequence_ = 0;
    std::int64_t position_ = 0;
};

// An extractor with the template that computes its transforms.
class TemplateExtractor {
  public:
    explicit TemplateExtractor(const nb::object& source)
        : template_(source), extractor_(program_of(source)) {}

    // (sequence_ptr, (position_ptr, ids, None) of states, the same of arcs or None, number of columns or
    // None)
    nb::tuple extract(nb::handle sequences, Vocabulary& states, Vocabulary& arcs, bool grow,
                      std::optional<std::int64_t> n_columns, bool more_columns) {
        const LockedWatch watch;
        FeatureWriter state_writer(states, grow), arc_writer(arcs, grow);
        RowReader reader(extractor_, template_, n_columns, more_columns);
        const ApplyTransform apply = [this](std::int32_t transform, std::string_view value) {
            return transformed(transform, value);
        };
        std::vector<std::int64_t> sequence_ptr{0};
        auto memo = extractor_.take_memo();
        reader.read_sequences(sequences.ptr(), [&](const Cells& cells) {
            extractor_.extract(cells, *memo, apply, state_writer, arc_writer);
            sequence_ptr.push_back(state_writer.n_positions());
            if (PyErr_CheckSignals() < 0) throw nb::python_error();
        });
        extractor_.give_back(std::move(memo));
        nb::object arc_lists = nb::none();
        if (extractor_.has_arc_lines()) arc_lists = to_python(arc_writer.finish());
        return nb::make_tuple(new_array(std::move(sequence_ptr)), to_python(state_writer.finish()), arc_lists,
                              reader.n_columns());
    }

  private:
    std::optional<std::string> transformed(std::int32_t transform, std::string_view value) const {
        const nb::object result = template_.attr("transform")(transform, to_python(value));
        if (result.is_none()) return std::nullopt;
        if (!PyUnicode_Check(result.ptr()))
            throw nb::type_error("Template.transform must give a string or None");
        return to_bytes(result.ptr());
    }

    nb::object template_;
    Extractor extractor_;

    friend int traverse(PyObject* self, visitproc visit, void* arg);
    friend int clear(PyObject* self);
};

// The template is a Python object that may know its extractor: the garbage collector has to see the circle.
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<TemplateExtractor>(self)->template_.ptr());
    return 0;
}

int clear(PyObject* self) {
    nb::inst_ptr<TemplateExtractor>(self)->template_.reset();
    return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {0, nullptr}};

}  // namespace

void bind_extraction(nb::module_& m) {
    nb::class_<TemplateExtractor>(m, "Extractor", nb::type_slots(slots),
                                  "Runs a template over sequences of rows.")
        .def(nb::init<nb::object>(), "template"_a)
        .def("extract", &TemplateExtractor::extract, "sequences"_a, "states"_a, "arcs"_a, "grow"_a,
             "n_columns"_a = nb::none(), "more_columns"_a = false,
             "(sequence_ptr, (position_ptr, ids, None) on labels, the same on arcs or None, number of "
             "columns or "
             "None)");
}

}  // namespace crfkit
