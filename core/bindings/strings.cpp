// Vocabulary, the readers of user input, and which features were seen with which labels.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/threads.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/plain_sequences.hpp"
#include "bindings/position_reader.hpp"
#include "bindings/python_objects.hpp"
#include "data/seen_pairs.hpp"
#include "text/named_positions.hpp"
#include "text/row_extraction.hpp"
#include "text/vocabulary.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

namespace {

nb::tuple to_bytes_of(const Vocabulary& vocabulary) {
    const std::string_view blob = vocabulary.blob();
    std::vector<std::uint32_t> lengths(vocabulary.size());
    for (std::int32_t id = 0; id < vocabulary.size(); ++id) lengths[id] = vocabulary.name(id).size();
    std::vector<std::uint8_t> bytes(blob.begin(), blob.end());
    return nb::make_tuple(new_array(std::move(bytes)), new_array(std::move(lengths)));
}

nb::object hashes_of(const Vocabulary& vocabulary) {
    std::vector<std::uint64_t> hashes(vocabulary.size());
    for (std::int32_t id = 0; id < vocabulary.size(); ++id)
        hashes[id] = Vocabulary::hash(vocabulary.name(id));
    return new_array(std::move(hashes));
}

nb::list names_of(const Vocabulary& vocabulary) {
    nb::list names;
    for (std::int32_t id = 0; id < vocabulary.size(); ++id) names.append(to_python(vocabulary.name(id)));
    return names;
}

void bind_vocabulary(nb::module_& m) {
    nb::class_<Vocabulary>(m, "Vocabulary", "Names and their ids 0, 1, 2, … in order of first occurrence.")
        .def(nb::init<>())
        .def("__len__", &Vocabulary::size)
        .def("__contains__", [](const Vocabulary& v, nb::str s) { return v.find(to_bytes(s.ptr())) >= 0; })
        .def(
            "add", [](Vocabulary& v, nb::str s) { return v.add(to_bytes(s.ptr())); }, "name"_a,
            "The id of the name, a new one when it was not there.")
        .def(
            "get", [](const Vocabulary& v, nb::str s) { return v.find(to_bytes(s.ptr())); }, "name"_a,
            "The id of the name, or -1.")
        .def(
            "name",
            [](const Vocabulary& v, std::int64_t id) {
                if (id < 0 || id >= v.size()) throw nb::index_error("no name has this id");
                return to_python(v.name(static_cast<std::int32_t>(id)));
            },
            "id"_a, "The name with this id.")
        .def("names", &names_of, "All names, by id.")
        .def(
            "keep",
            [](const Vocabulary& v, const Array<bool>& mask) {
                auto [kept, remap] =
                    v.keep({reinterpret_cast<const std::uint8_t*>(mask.data()), mask.size()});
                return nb::make_tuple(std::move(kept), new_array(std::move(remap)));
            },
            "mask"_a, "The vocabulary of the names where mask[id], and old id -> new id (-1 = dropped).")
        .def("hashes", &hashes_of, "A number for each name, by id, that depends on the process.")
        .def(
            "extend",
            [](Vocabulary& v, const Vocabulary& other, const Array<bool>& mask) {
                check_size("mask", mask.size(), other.size());
                return new_array(unlocked([&] {
                    std::vector<std::int32_t> ids(mask.size());
                    for (std::int32_t id = 0; id < other.size(); ++id)
                        ids[id] = mask.data()[id] ? v.add(other.name(id)) : v.find(other.name(id));
                    return ids;
                }));
            },
            "other"_a, "mask"_a,
            "Adds the names of another one where mask[id]; the ids here of all its names, -1: not there.")
        .def(
            "find",
            [](const Vocabulary& v, const Vocabulary& other) {
                return new_array(unlocked([&] { return v.find_all(other); }));
            },
            "other"_a, "The ids here of all names of another one, by their ids there; -1: not there.")
        .def_prop_ro("hash_bits", [](const Vocabulary& v) { return v.feature_hash().bits; })
        .def(
            "hash_features",
            [](Vocabulary& v, int bits) {
                if (bits < 0 || bits > FeatureHash::most_bits)
                    throw nb::value_error("no such number of bits");
                v.hash_features({bits});
            },
            "bits"_a, "Lets features be looked up by the names of their buckets; 0: by their own names.")
        .def(
            "name_of",
            [](const Vocabulary& v, nb::str s) {
                const std::string feature = to_bytes(s.ptr());
                FeatureHash::Name name;
                const FeatureHash& buckets = v.feature_hash();
                return to_python(buckets.bits > 0 ? buckets.write(feature, name) : std::string_view(feature));
            },
            "feature"_a, "The name that a feature has here: its own, or that of its bucket.")
        .def("to_bytes", &to_bytes_of, "All names as UTF-8 one after the other, and the length of each.")
        .def_static(
            "from_bytes",
            [](const Array<std::uint8_t>& blob, const Array<std::uint32_t>& lengths) {
                const auto* bytes = reinterpret_cast<const char*>(blob.data());
                return unlocked([&] { return Vocabulary::from_bytes({bytes, blob.size()}, view(lengths)); });
            },
            "blob"_a, "lengths"_a, "The inverse of to_bytes; ValueError for anything else.");
}

// Names that were copied while the lock was held, to be looked up by several threads without it.
class NamedBlocks {
  public:
    NamedBlocks(const Vocabulary& vocabulary, int n_threads)
        : vocabulary_(vocabulary), n_threads_(n_threads) {
        blocks_.push_back(std::make_unique<NamedPositions>());
    }
    NamedPositions& last() { return *blocks_[n_full_]; }
    // After each sequence: the next one is read into another block if this one is full.
    void go_on(FeatureWriter& writer) {
        if (last().n_positions() < positions_per_block) return;
        if (++n_full_ == static_cast<std::size_t>(blocks_per_thread * n_threads_)) look_up();
        if (n_full_ == blocks_.size()) blocks_.push_back(std::make_unique<NamedPositions>());
        writer.redirect(last());
    }
    FeatureArrays finish() {
        ++n_full_;
        look_up();
        FeatureArrays all = unlocked([&] { return joined(std::move(found_), n_threads_); });
        const auto is_one = [](double value) { return value == 1.0; };
        if (std::all_of(all.values.begin(), all.values.end(), is_one)) all.values = {};
        return all;
    }

  private:
    static constexpr std::int64_t positions_per_block = 2048;
    static constexpr int blocks_per_thread = 4;

    void look_up() {
        const std::size_t first = found_.size();
        found_.resize(first + n_full_);
        unlocked([&] {
            parallel_for(static_cast<std::int64_t>(n_full_), n_threads_, [&](std::int64_t n, int) {
                found_[first + n] = blocks_[n]->look_up(vocabulary_);
                blocks_[n]->clear();
            });
        });
        n_full_ = 0;
    }

    const Vocabulary& vocabulary_;
    int n_threads_;
    std::size_t n_full_ = 0;
    std::vector<std::unique_ptr<NamedPositions>> blocks_;
    std::vector<FeatureArrays> found_;
};

// A vocabulary that grows does so in the order of the names, on one thread.
nb::tuple encode_positions(nb::handle sequences, Vocabulary& vocabulary, bool grow, int n_threads) {
    if (!grow) {
        if (auto plain = read_plain_sequences(sequences.ptr(), vocabulary, n_threads)) {
            const nb::object sequence_ptr = new_array(std::move(plain->sequence_ptr));
            const nb::tuple lists = to_python(std::move(plain->features));
            return nb::make_tuple(sequence_ptr, lists[0], lists[1], lists[2], nb::dict());
        }
    }
    constexpr Py_ssize_t few = 64;  // sequences, of which other threads would hardly help to read the names
    const bool short_list = is_list_or_tuple(sequences.ptr()) && items_of(sequences.ptr()).second < few;
    if (grow || n_threads == 1 || short_list) {
        PositionReader reader(vocabulary, grow);
        reader.read_sequences(sequences.ptr());
        return reader.finish();
    }
    NamedBlocks blocks(vocabulary, n_threads);
    PositionReader reader(blocks.last(), false);
    reader.read_sequences(sequences.ptr(), [&](FeatureWriter& writer) { blocks.go_on(writer); });
    return reader.finish(blocks.finish());
}

nb::tuple arrays_of(SeenPairs&& seen) {
    return nb::make_tuple(new_array(std::move(seen.feature_ptr)), new_array(std::move(seen.labels)));
}

// Complaints may quote any string, so they travel with surrogates and all.
void bind_complaint(nb::module_& m) {
    static PyObject* type = PyErr_NewException("crfkit._core.InvalidInput", PyExc_ValueError, nullptr);
    if (!type) throw nb::python_error();
    m.attr("InvalidInput") = nb::handle(type);
    nb::register_exception_translator([](const std::exception_ptr& exception, void*) {
        try {
            std::rethrow_exception(exception);
        } catch (const InvalidInput& complaint) {
            PyErr_SetObject(type, to_python(std::string_view(complaint.what())).ptr());
        }
    });
}

using Int64s = Array<std::int64_t>;
using Int32s = Array<std::int32_t>;

void bind_lists(nb::module_& m) {
    m.def(
        "seen_pairs",
        [](const Int64s& position_ptr, const Int32s& ids, const Int32s& labels, std::int64_t n_features,
           std::int64_t n_labels, const Maybe<std::int64_t>& set_ptr, const Maybe<std::int32_t>& set_labels,
           const Maybe<std::int64_t>& sequence_ptr) {
            const FeatureSpans features{view(position_ptr), view(ids), n_features};
            const LabelSpans annotation{view(labels), view(set_ptr), view(set_labels), n_labels};
            return arrays_of(unlocked([&] {
                return sequence_ptr ? seen_arc_pairs(view(sequence_ptr), features, annotation)
                                    : seen_pairs(features, annotation);
            }));
        },
        "position_ptr"_a, "ids"_a, "labels"_a, "n_features"_a, "n_labels"_a, "set_ptr"_a = nb::none(),
        "set_labels"_a = nb::none(), "sequence_ptr"_a = nb::none(),
        "(feature_ptr [F + 1], labels [P]): the labels each feature was seen with, rising. With "
        "sequence_ptr, "
        "features are of arcs: before * L + after of the arcs that enter their positions.");
    m.def(
        "position_counts",
        [](const Int64s& position_ptr, const Int32s& ids, std::int64_t n_features) {
            return new_array(
                unlocked([&] { return position_counts({view(position_ptr), view(ids), n_features}); }));
        },
        "position_ptr"_a, "ids"_a, "n_features"_a, "Number of positions at which each feature stands, [F].");
    m.def(
        "first_equals",
        [](const Int64s& position_ptr, const Int32s& ids, const std::optional<Array<double>>& values,
           const Int64s& feature_ptr, const Int32s& labels) {
            const FeatureSpans features{view(position_ptr), view(ids),
                                        static_cast<std::int64_t>(feature_ptr.size()) - 1};
            return new_array(unlocked(
                [&] { return first_equals(features, view(values), view(feature_ptr), view(labels)); }));
        },
        nb::arg("position_ptr"), nb::arg("ids"), nb::arg("values").none(), nb::arg("feature_ptr"),
        nb::arg("labels"), "The first feature equal to each one, at all positions and in its labels, [F].");
    m.def(
        "renamed_features",
        [](const Int64s& position_ptr, const Int32s& ids, const Maybe<double>& values, const Int32s& remap) {
            return to_python(
                unlocked([&] { return renamed(view(position_ptr), view(ids), view(values), view(remap)); }));
        },
        "position_ptr"_a, "ids"_a, "values"_a.none(), "remap"_a,
        "(position_ptr, ids, values) with ids renamed by remap [F]; -1 = dropped.");
}

}  // namespace

void bind_strings(nb::module_& m) {
    bind_complaint(m);
    bind_vocabulary(m);
    m.attr("LARGEST_VALUE") = largest_value;
    m.def("encode_positions", &encode_positions, "sequences"_a, "vocabulary"_a, "grow"_a, "n_threads"_a = 1,
          "(sequence_ptr, position_ptr, ids, values or None, {block: (positions, rows)}) of lists of "
          "positions.");
    bind_lists(m);
}

}  // namespace crfkit
