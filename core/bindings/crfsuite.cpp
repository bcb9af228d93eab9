// Model files of CRFsuite.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "answers/chain_potentials.hpp"
#include "base/file_bytes.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/brief_release.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/named_questions.hpp"
#include "bindings/python_objects.hpp"
#include "formats/crfsuite_file.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

namespace {

// A file, and whatever holds its bytes.
struct HeldFile {
    HeldFile(nb::bytes given, std::int64_t most_labels, double largest_weight)
        : object(std::move(given)),
          bytes(PyBytes_AS_STRING(object.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(object.ptr()))),
          file(bytes, most_labels, largest_weight) {}
    HeldFile(FileBytes&& read, std::int64_t most_labels, double largest_weight)
        : own(std::move(read)), bytes(own.view()), file(bytes, most_labels, largest_weight) {}
    HeldFile(const HeldFile&) = delete;
    HeldFile& operator=(const HeldFile&) = delete;

    nb::bytes head() const { return nb::bytes(bytes.data(), 48); }

    nb::object object;
    FileBytes own;
    std::string_view bytes;
    CrfsuiteFile file;
};

// Ctrl-C, while the interpreter's lock is not held.
void let_signals_in() {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() < 0) throw nb::python_error();
}

nb::object opened(const nb::bytes& path, std::int64_t most_labels, double largest_weight) {
    std::unique_ptr<HeldFile> held;
    int failure = 0;
    try {
        const LockRelease release;
        held =
            std::make_unique<HeldFile>(read_file(path.c_str(), let_signals_in), most_labels, largest_weight);
    } catch (const std::system_error& error) {
        failure = error.code().value();
    }
    if (failure) {
        errno = failure;
        const nb::object name = nb::steal(PyUnicode_DecodeFSDefault(path.c_str()));
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, name.ptr());
        throw nb::python_error();
    }
    return nb::cast(held.release(), nb::rv_policy::take_ownership);
}

nb::list labels_of(const HeldFile& held) {
    nb::list labels;
    for (const std::string& label : held.file.labels) labels.append(to_python(std::string_view(label)));
    return labels;
}

nb::tuple read(const HeldFile& held) {
    CrfsuiteModel model = unlocked([&] { return held.file.read(); });
    return nb::make_tuple(new_array(std::move(model.names)), new_array(std::move(model.name_lengths)),
                          new_array(std::move(model.pair_ptr)), new_array(std::move(model.pair_labels)),
                          new_array(std::move(model.arc_before)), new_array(std::move(model.arc_after)),
                          new_array(std::move(model.weights)));
}

// Potentials with the part of the model that a sequence needs, and a design of the sequence.
struct Question {
    Question(const HeldFile& held, const NamedPositions& positions) {
        const CrfsuitePart part = part_of(held.file, positions);
        design = one_sequence(part.layout, positions.n_positions(), part.features);
        potentials = std::make_unique<ChainPotentials>(part.layout, part.weights.data());
    }
    std::unique_ptr<ChainPotentials> potentials;
    std::unique_ptr<Design> design;
};

nb::tuple ask(const HeldFile& held, const NamedPositions& positions) {
    const auto question = unlocked<BriefRelease>([&] { return std::make_unique<Question>(held, positions); });
    return nb::make_tuple(to_python(std::move(question->potentials)), to_python(std::move(question->design)));
}

nb::tuple tag(const HeldFile& held, const NamedPositions& positions, const nb::list& labels) {
    std::vector<std::int32_t> best(static_cast<std::size_t>(positions.n_positions()));
    const auto question = unlocked<BriefRelease>([&] {
        auto asked = std::make_unique<Question>(held, positions);
        asked->potentials->score(*asked->design, 1)->decode(best.data(), 1);
        return asked;
    });
    const auto n_labels = static_cast<std::int32_t>(held.file.labels.size());
    return nb::make_tuple(to_python(std::move(question->potentials)), to_python(std::move(question->design)),
                          chosen(labels, n_labels, best));
}

nb::bytes write(const Layout& layout, const std::vector<std::string>& labels, const Vocabulary& attributes,
                const Array<double>& w) {
    if (static_cast<std::int64_t>(w.size()) != layout.n_weights() ||
        labels.size() != static_cast<std::size_t>(layout.n_labels) ||
        attributes.size() != layout.n_features())
        throw std::invalid_argument("labels, attributes and weights must be those of the layout");
    if (!layout.dense_columns.empty() || !layout.arc_triples.empty() || !layout.facets.empty() ||
        layout.bigrams || std::count(layout.arc_before.begin(), layout.arc_before.end(), layout.n_labels) ||
        std::count(layout.arc_after.begin(), layout.arc_after.end(), layout.n_labels))
        throw std::invalid_argument("a file of CRFsuite holds state pairs and arcs between labels alone");
    const std::string file = unlocked([&] { return write_crfsuite(layout, labels, attributes, w.data()); });
    return nb::bytes(file.data(), file.size());
}

}  // namespace

void bind_crfsuite(nb::module_& m) {
    nb::class_<HeldFile>(m, "CrfsuiteFile",
                         "A model file of CRFsuite; attributes are read when they are asked for.")
        .def(nb::init<nb::bytes, std::int64_t, double>(), "data"_a, "most_labels"_a, "largest_weight"_a)
        .def_static("open", &opened, "path"_a, "most_labels"_a, "largest_weight"_a)
        .def_prop_ro("head", &HeldFile::head, "The first 48 bytes.")
        .def_prop_ro("labels", &labels_of)
        .def_prop_ro("n_features", [](const HeldFile& held) { return held.file.n_features(); })
        .def("read", &read,
             "(names, name_lengths, pair_ptr, pair_labels, arc_before, arc_after, weights): the whole model.")
        .def("ask", &ask, "positions"_a,
             "Potentials with the part of the model that a sequence needs, and a design of the sequence.")
        .def("tag", &tag, "positions"_a, "labels"_a, "The same, and the best labels by their names.");
    m.def("write_crfsuite", &write, "layout"_a, "labels"_a, "attributes"_a, "w"_a,
          "The bytes of the model file.");
    m.def(
        "write_empty_crfsuite",
        [] {
            const std::string file = write_empty_crfsuite();
            return nb::bytes(file.data(), file.size());
        },
        "The bytes of the file of a model without labels.");
}

}  // namespace crfkit
