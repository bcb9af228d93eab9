// Features by template, from rows of strings.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

#include "bindings/bindings.hpp"
#include "bindings/lexicon_table.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/python_objects.hpp"
#include "bindings/template_extractor.hpp"

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

// The lexicons that transforms read, which keep the arrays of Python that they are views of.
void find_lexicons(nb::handle source, const std::vector<bool>& reads_lexicon, TemplateProgram& program) {
    for (std::size_t j = 0; j < program.transforms.size(); ++j) {
        if (!reads_lexicon[j]) continue;
        const nb::object found = source.attr("lexicon")(j);
        const auto [table, list] = nb::cast<std::pair<nb::object, std::int32_t>>(found);
        program.transforms[j].lexicon = {std::make_shared<nb::object>(table),
                                         &nb::cast<const LexiconTable&>(table).lexicon};
        program.transforms[j].list = list;
    }
}

// Plain arcs (a B line without macros) are weights of the model, not features, and are left out.
TemplateProgram program_of(nb::handle source, bool computed) {
    const nb::object program = source.attr("program")();
    TemplateProgram out;
    std::vector<bool> reads_lexicon;
    for (nb::handle transform : program.attr("transforms")) {
        const std::string function = text(nb::object(transform.attr("function")));
        const nb::object argument = transform.attr("argument");
        const bool counted = PyLong_Check(argument.ptr());
        out.transforms.push_back({integer(transform.attr("column")), function == "x",
                                  computed ? text_function(function) : TextFunction::none,
                                  counted ? nb::cast<std::int64_t>(argument) : 0});
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

// Reads Python sequences of rows (words, or tuples of columns) for a template: the columns that it reads. The
// bytes of every cell are copied before any Python code can run, so nothing points into Python's memory.
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

    void open(PyObject* sequences) { list_ = list_of(sequences, "a list of sequences"); }
    // The next sequences, about `n_positions` of their positions; null after the last one.
    std::unique_ptr<RowBlock> read(std::int64_t n_positions) {
        auto block = std::make_unique<RowBlock>();
        block->n_columns = extractor_.columns().size();
        for (; has_more() && block->n_positions() < n_positions; ++sequence_) {
            const nb::object sequence = nb::borrow(PySequence_Fast_GET_ITEM(list_.ptr(), sequence_));
            read_sequence(sequence.ptr(), *block);
        }
        return block->n_sequences() > 0 ? std::move(block) : nullptr;
    }
    bool has_more() const { return sequence_ < PySequence_Fast_GET_SIZE(list_.ptr()); }
    std::optional<std::int64_t> n_columns() const { return n_columns_; }

  private:
    void read_sequence(PyObject* sequence, RowBlock& block) {
        position_ = 0;
        const nb::object rows = list_of(sequence, "a list of words or rows");
        for (; position_ < PySequence_Fast_GET_SIZE(rows.ptr()); ++position_) {
            const nb::object row = nb::borrow(PySequence_Fast_GET_ITEM(rows.ptr(), position_));
            read_row(row.ptr(), block);
        }
        block.sequence_ptr.push_back(block.n_positions() + position_);
    }

    void read_row(PyObject* row, RowBlock& block) {
        if (PyUnicode_Check(row)) return read_cells(&row, 1, block);
        const nb::object columns = list_of(row, "a word or a tuple of columns");
        const auto [values, n] = items_of(columns.ptr());
        read_cells(values, n, block);
    }

    void read_cells(PyObject* const* values, std::int64_t n, RowBlock& block) {
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
            std::string& bytes = block.bytes;
            const std::size_t begin = bytes.size();
            bytes.resize(begin + most_bytes(value));
            bytes.resize(write_bytes(value, bytes.data() + begin) - bytes.data());
            RowBlock::check_size(bytes.size());
            block.cells.push_back(
                {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(bytes.size() - begin)});
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
    nb::object list_;
    std::int64_t sequence_ = 0;
    std::int64_t position_ = 0;
};

constexpr std::int64_t positions_per_block = 4096;
constexpr std::int64_t positions_at_once = 1 << 16;  // for each thread: what is read before others work on it
constexpr std::int64_t few_positions = 512;          // are not worth to let go of the lock for

}  // namespace

TemplateExtractor::TemplateExtractor(const nb::object& source, bool computed)
    : template_(source), extractor_(program_of(source, computed)) {}

ApplyTransform TemplateExtractor::transforms() {
    return [this](std::int32_t transform, std::string_view value) -> std::optional<std::string> {
        std::pair<std::int32_t, std::string> key(transform, value);
        {
            const std::lock_guard lock(known_mutex_);
            if (const auto found = known_.find(key); found != known_.end()) return found->second;
        }
        std::optional<std::string> result;
        {
            const LockTaken lock;
            result = transformed(transform, value);
        }
        const std::lock_guard lock(known_mutex_);
        n_known_bytes_ += 128 + 2 * value.size();
        if (n_known_bytes_ > most_known_bytes) {
            known_.clear();
            n_known_bytes_ = 0;
        }
        known_.emplace(std::move(key), result);
        return result;
    };
}

std::optional<std::string> TemplateExtractor::transformed(std::int32_t transform,
                                                          std::string_view value) const {
    const nb::object result = template_.attr("transform")(transform, to_python(value));
    if (result.is_none()) return std::nullopt;
    if (!PyUnicode_Check(result.ptr())) throw nb::type_error("Template.transform must give a string or None");
    return to_bytes(result.ptr());
}

nb::tuple TemplateExtractor::extract(nb::handle sequences, Vocabulary& states, Vocabulary& arcs, bool grow,
                                     std::optional<std::int64_t> n_columns, bool more_columns,
                                     int n_threads) {
    RowReader reader(extractor_, template_, n_columns, more_columns);
    reader.open(sequences.ptr());
    std::vector<std::int32_t> columns(extractor_.columns().size());
    std::iota(columns.begin(), columns.end(), 0);
    RowExtraction extraction(extractor_, states, arcs, grow);
    const ApplyTransform apply = transforms();
    while (reader.has_more()) {
        std::vector<std::unique_ptr<RowBlock>> blocks;
        std::vector<const RowBlock*> pointers;
        std::int64_t n_positions = 0;
        while (n_positions < n_threads * positions_at_once) {
            auto block = reader.read(positions_per_block);
            if (!block) break;
            n_positions += block->n_positions();
            pointers.push_back(block.get());
            blocks.push_back(std::move(block));
            if (PyErr_CheckSignals() < 0) throw nb::python_error();
        }
        if (n_positions < few_positions)
            extraction.add(pointers, columns, apply, 1);
        else
            unlocked([&] { extraction.add(pointers, columns, apply, n_threads); });
    }
    return finish(extraction, reader.n_columns(), n_threads);
}

nb::tuple TemplateExtractor::finish(RowExtraction& extraction, std::optional<std::int64_t> n_columns,
                                    int n_threads) {
    FeatureArrays states, arcs;
    unlocked([&] {
        states = extraction.take_states(n_threads);
        arcs = extraction.take_arcs(n_threads);
    });
    nb::object arc_lists = nb::none();
    if (extractor_.has_arc_lines()) arc_lists = to_python(std::move(arcs));
    return nb::make_tuple(new_array(extraction.take_sequence_ptr()), to_python(std::move(states)), arc_lists,
                          n_columns);
}

namespace {

// The template is a Python object that may know its extractor: the garbage collector has to see the circle.
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<TemplateExtractor>(self)->source().ptr());
    return 0;
}

int clear(PyObject* self) {
    nb::inst_ptr<TemplateExtractor>(self)->source().reset();
    return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {0, nullptr}};

}  // namespace

void bind_extraction(nb::module_& m) {
    nb::class_<TemplateExtractor>(m, "Extractor", nb::type_slots(slots),
                                  "Runs a template over sequences of rows.")
        .def(nb::init<nb::object, bool>(), "template"_a, "computed"_a = false)
        .def("extract", &TemplateExtractor::extract, "sequences"_a, "states"_a, "arcs"_a, "grow"_a,
             "n_columns"_a = nb::none(), "more_columns"_a = false, "n_threads"_a = 1,
             "(sequence_ptr, (position_ptr, ids, None) on labels, the same on arcs or None, number of "
             "columns or "
             "None)");
}

}  // namespace crfkit
