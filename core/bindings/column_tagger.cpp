// Column files tagged in chunks, by as many Python threads as there are processors: each lets go of the
// interpreter's lock while it works on a chunk.
#include "answers/column_tagger.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/python_objects.hpp"
#include "bindings/template_extractor.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

namespace {

nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }

nb::object take(ColumnCutter& cutter, std::size_t size) {
    std::optional<ColumnChunk> chunk = cutter.take(size);
    return chunk ? nb::cast(std::move(*chunk)) : nb::none();
}

// (the tagged bytes, the number of sequences); None where the chunk cannot be read, or a sequence of it has
// no possible labels.
nb::object tag_chunk(const ChainPotentials& potentials, const std::shared_ptr<Layout>& layout,
                     TemplateExtractor& extractor, Vocabulary& states, Vocabulary& arcs,
                     const std::vector<std::string>& labels, const ColumnCutter& cutter,
                     const std::vector<std::int32_t>& inputs, bool labels_only, ColumnChunk& chunk) {
    const auto n_inputs = static_cast<std::int32_t>(inputs.size());
    for (const std::int32_t column : extractor.extractor().columns())
        if (column >= n_inputs) throw std::invalid_argument("the template reads a column that is not there");
    for (const std::int32_t column : inputs)
        if (column < 0 || column >= static_cast<std::int64_t>(cutter.form().n_columns))
            throw std::invalid_argument("the file has no such column");
    if (static_cast<std::int64_t>(labels.size()) != layout->n_labels)
        throw std::invalid_argument("there must be one name for each label of the layout");
    const ColumnTagger tagger{potentials, layout, extractor.extractor(), states, arcs, labels};
    const ApplyTransform apply = extractor.transforms();
    TaggedChunk tagged;
    try {
        tagged = unlocked([&] { return tagger.tag(chunk, cutter.form(), inputs, labels_only, apply); });
    } catch (const ColumnError&) {
        return nb::none();
    } catch (const std::invalid_argument&) {
        return nb::none();
    }
    return nb::make_tuple(bytes_of(tagged.bytes), tagged.n_sequences);
}

}  // namespace

void bind_column_tagger(nb::module_& m) {
    nb::class_<ColumnChunk>(m, "ColumnChunk", "Whole sequences of a column file, as they stand there.")
        .def_prop_ro("bytes", [](const ColumnChunk& self) { return bytes_of(self.bytes); })
        .def_ro("first_line", &ColumnChunk::first_line);
    nb::class_<ColumnCutter>(m, "ColumnCutter", "Cuts the bytes of a column file into chunks.")
        .def(
            "__init__",
            [](ColumnCutter* self, const std::string& separator, const std::string& prefix, bool automatic) {
                new (self) ColumnCutter(ColumnForm{separator, prefix, automatic, 0, {}, {}});
            },
            "separator"_a, "prefix"_a, "automatic"_a)
        .def(
            "add",
            [](ColumnCutter& self, const nb::bytes& piece) {
                self.add(std::string_view(piece.c_str(), piece.size()));
            },
            "piece"_a)
        .def("end", &ColumnCutter::end, "No more bytes come.")
        .def("take", &take, "size"_a,
             "A chunk of at least so many bytes (0: of all that is there), or None while there is none.")
        .def_prop_ro("first_row", [](const ColumnCutter& self) { return bytes_of(self.form().first_row); });
    m.def(
        "tag_chunk", &tag_chunk, "potentials"_a, "layout"_a, "extractor"_a, "states"_a, "arcs"_a, "labels"_a,
        "cutter"_a, "inputs"_a, "labels_only"_a, "chunk"_a,
        "(the chunk with the best labels, number of sequences), or None where the chunk, which is left as it "
        "was, has an error.");
}

}  // namespace crfkit
