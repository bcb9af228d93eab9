// Features by template, from rows of strings.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/row_reader.hpp"

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

// Plain arcs (a B line without macros) are weights of the model, not features, and are left out.
TemplateProgram program_of(nb::handle program) {
    TemplateProgram out;
    for (nb::handle transform : program.attr("transforms")) {
        const bool identity = to_bytes(nb::object(transform.attr("function")).ptr()) == "x";
        out.transforms.push_back({integer(transform.attr("column")), identity});
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
    return out;
}

// An extractor with the template that computes its transforms.
class TemplateExtractor {
  public:
    explicit TemplateExtractor(const nb::object& source)
        : template_(source), extractor_(program_of(source.attr("program")())) {}

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
