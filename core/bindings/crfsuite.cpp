// Model files of CRFsuite.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "arrays.hpp"
#include "bindings.hpp"
#include "crfsuite_file.hpp"
#include "lock_release.hpp"
#include "python_objects.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

namespace {

nb::tuple read(const Array<std::uint8_t>& file, std::int64_t most_labels, double largest_weight) {
    CrfsuiteModel model;
    {
        const LockRelease release;
        const auto* bytes = reinterpret_cast<const char*>(file.data());
        model = read_crfsuite({bytes, file.size()}, most_labels, largest_weight);
    }
    nb::list labels;
    for (const std::string& label : model.labels) labels.append(to_python(std::string_view(label)));
    return nb::make_tuple(labels, to_numpy(std::move(model.names)), to_numpy(std::move(model.name_lengths)),
                          to_numpy(std::move(model.pair_ptr)), to_numpy(std::move(model.pair_labels)),
                          to_numpy(std::move(model.arc_before)), to_numpy(std::move(model.arc_after)),
                          to_numpy(std::move(model.weights)));
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
    std::string file;
    {
        const LockRelease release;
        file = write_crfsuite(layout, labels, attributes, w.data());
    }
    return nb::bytes(file.data(), file.size());
}

}  // namespace

void bind_crfsuite(nb::module_& m) {
    m.def("read_crfsuite", &read, "file"_a, "most_labels"_a, "largest_weight"_a,
          "(labels, names, name_lengths, pair_ptr, pair_labels, arc_before, arc_after, weights) of a model "
          "file.");
    m.def("write_crfsuite", &write, "layout"_a, "labels"_a, "attributes"_a, "w"_a,
          "The bytes of the model file.");
}

}  // namespace crfkit
