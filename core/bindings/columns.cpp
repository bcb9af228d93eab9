// Column files without a Python object per cell.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "base/interruption.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/python_objects.hpp"
#include "bindings/template_extractor.hpp"
#include "text/column_shards.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

namespace {

// (bytes, first line) of a part of a file that cannot be read.
nb::object failed_part(const ColumnShards& shards) {
    const std::optional<ColumnChunk>& part = shards.failed();
    if (!part) return nb::none();
    return nb::make_tuple(nb::bytes(part->bytes.data(), part->bytes.size()), part->first_line);
}

nb::object take_shard(ColumnShards& shards) {
    std::unique_ptr<ColumnRows> rows = shards.take();
    return rows ? nb::cast(rows.release(), nb::rv_policy::take_ownership) : nb::none();
}

// The rows of sequence n, each a tuple of these columns.
nb::list rows_of(const ColumnRows& rows, std::int64_t n, const std::vector<std::int32_t>& columns) {
    const auto [block, m] = rows.locate(n);
    nb::list found;
    for (std::int64_t t = block->rows.sequence_ptr[m]; t < block->rows.sequence_ptr[m + 1]; ++t) {
        nb::object row = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(columns.size())));
        if (!row.is_valid()) throw nb::python_error();
        for (std::size_t k = 0; k < columns.size(); ++k) {
            nb::object value = to_python(block->rows.cell(t, static_cast<std::size_t>(columns[k])));
            PyTuple_SET_ITEM(row.ptr(), static_cast<Py_ssize_t>(k), value.release().ptr());
        }
        found.append(row);
    }
    return found;
}

// (distinct values, the number of the value at each position) of a column.
nb::tuple column_of(const ColumnRows& rows, std::size_t column) {
    Vocabulary values;
    std::vector<std::int32_t> ids;
    unlocked([&] {
        ids.reserve(static_cast<std::size_t>(rows.n_positions()));
        Pace pace;
        for (const ColumnBlock& block : rows.blocks())
            for (std::int64_t t = 0; t < block.rows.n_positions(); ++t) {
                pace.work(64);
                ids.push_back(values.add(block.rows.cell(t, column)));
            }
    });
    nb::list names;
    for (std::int32_t id = 0; id < values.size(); ++id) names.append(to_python(values.name(id)));
    return nb::make_tuple(names, new_array(std::move(ids)));
}

nb::object sequence_ptr_of(const ColumnRows& rows) {
    std::vector<std::int64_t> ptr{0};
    for (const ColumnBlock& block : rows.blocks()) {
        const std::int64_t first = ptr.back();
        for (std::int64_t n = 1; n <= block.rows.n_sequences(); ++n)
            ptr.push_back(first + block.rows.sequence_ptr[n]);
    }
    return new_array(std::move(ptr));
}

nb::tuple extract_columns(TemplateExtractor& source, const ColumnRows& rows,
                          const std::vector<std::int32_t>& inputs, Vocabulary& states, Vocabulary& arcs,
                          bool grow, int n_threads) {
    std::vector<std::int32_t> columns;
    for (const std::int32_t column : source.extractor().columns())
        columns.push_back(inputs.at(static_cast<std::size_t>(column)));
    RowExtraction extraction(source.extractor(), states, arcs, grow);
    const ApplyTransform apply = source.transforms();
    unlocked([&] { extraction.add(rows.row_blocks(), columns, apply, n_threads); });
    return source.finish(extraction, static_cast<std::int64_t>(inputs.size()), n_threads);
}

}  // namespace

void bind_columns(nb::module_& m) {
    nb::class_<ColumnRows>(m, "ColumnRows", "The rows of a column file.")
        .def_prop_ro("n_sequences", &ColumnRows::n_sequences)
        .def_prop_ro("n_positions", &ColumnRows::n_positions)
        .def_prop_ro("n_columns", [](const ColumnRows& self) { return self.form().n_columns; })
        .def_prop_ro("separator", [](const ColumnRows& self) { return self.form().joint; })
        .def("sequence_ptr", &sequence_ptr_of, "Where the positions of each sequence begin, [N + 1].")
        .def("rows", &rows_of, "n"_a, "columns"_a, "These columns of the rows of sequence n, as tuples.")
        .def("column", &column_of, "column"_a,
             "The distinct values of a column, and which of them each position has, [T].")
        .def("line", &ColumnRows::line, "n"_a, "i"_a, "The line that position i of sequence n stands on.")
        .def(
            "extract",
            [](const ColumnRows& self, TemplateExtractor& extractor, const std::vector<std::int32_t>& inputs,
               Vocabulary& states, Vocabulary& arcs, bool grow, int n_threads) {
                return extract_columns(extractor, self, inputs, states, arcs, grow, n_threads);
            },
            "extractor"_a, "inputs"_a, "states"_a, "arcs"_a, "grow"_a, "n_threads"_a,
            "What Extractor.extract gives for rows of these columns.");
    nb::class_<ColumnShards>(m, "ColumnShards",
                             "Reads a column file, piece by piece, and cuts it into shards.")
        .def(
            "__init__",
            [](ColumnShards* self, const std::string& separator, const std::string& prefix, bool automatic,
               std::int64_t shard_size, int n_threads) {
                new (self)
                    ColumnShards(ColumnForm{separator, prefix, automatic, 0, {}, {}}, shard_size, n_threads);
            },
            "separator"_a, "prefix"_a, "automatic"_a, "shard_size"_a, "n_threads"_a)
        .def(
            "add",
            [](ColumnShards& self, const nb::bytes& piece) {
                const std::string_view bytes(piece.c_str(), piece.size());
                unlocked([&] { self.add(bytes); });
            },
            "piece"_a, "More bytes of the file.")
        .def(
            "end", [](ColumnShards& self) { unlocked([&] { self.end(); }); }, "No more bytes come.")
        .def("take", &take_shard,
             "The rows of the next shard, None where it is not complete or cannot be read.")
        .def_prop_ro("failed", &failed_part,
                     "(bytes, first line) of the first part that cannot be read, or None.")
        .def_prop_ro("first_row", [](const ColumnShards& self) {
            const std::string& row = self.form().first_row;
            return nb::bytes(row.data(), row.size());
        });
}

}  // namespace crfkit
