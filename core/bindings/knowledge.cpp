// Lexicons and tables of words, in arrays that a file holds.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "bindings/lexicon_table.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/python_objects.hpp"
#include "text/brown_clusters.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

namespace {

// The bytes of a list of strings, one after the other.
class Texts {
  public:
    explicit Texts(nb::handle list) {
        std::vector<std::size_t> ends{0};
        for (nb::handle item : list) {
            if (!PyUnicode_Check(item.ptr()))
                throw InvalidInput("expected a list of strings, got " + described(item.ptr()) + " in it");
            make_ready(item.ptr());
            const std::size_t begin = bytes_.size();
            bytes_.resize(begin + most_bytes(item.ptr()));
            bytes_.resize(write_bytes(item.ptr(), bytes_.data() + begin) - bytes_.data());
            ends.push_back(bytes_.size());
        }
        for (std::size_t i = 0; i + 1 < ends.size(); ++i)
            views_.emplace_back(bytes_.data() + ends[i], ends[i + 1] - ends[i]);
    }
    const std::vector<std::string_view>& views() const { return views_; }

  private:
    std::string bytes_;
    std::vector<std::string_view> views_;
};

// (slots, ends, blob)
nb::tuple arrays_of(const Vocabulary& strings) {
    auto [slots, ends] = unlocked([&] { return index_strings(strings); });
    const std::string_view blob = strings.blob();
    std::vector<std::uint8_t> bytes(blob.begin(), blob.end());
    return nb::make_tuple(new_array(std::move(slots)), new_array(std::move(ends)),
                          new_array(std::move(bytes)));
}

void bind_string_table(nb::module_& m) {
    m.def("index_strings", &arrays_of, "strings"_a, "(slots, ends, blob) of a StringTable with these names.");
    nb::class_<StringTable>(m, "StringTable", "Strings and their ids, in arrays.")
        .def(nb::init<Array<std::uint32_t>, Array<std::uint32_t>, Array<std::uint8_t>>(), "slots"_a, "ends"_a,
             "blob"_a)
        .def("__len__", [](const StringTable& t) { return t.index.size(); })
        .def(
            "get",
            [](const StringTable& t, nb::str text) -> std::int64_t {
                const std::uint32_t id = t.index.find(to_bytes(text.ptr()));
                return id == StringIndex::absent ? -1 : std::int64_t{id};
            },
            "text"_a, "The id of a string, or -1.")
        .def(
            "get_all",
            [](const StringTable& t, nb::handle list) {
                const Texts texts(list);
                std::vector<std::int64_t> ids;
                for (const std::string_view text : texts.views()) {
                    const std::uint32_t id = t.index.find(text);
                    ids.push_back(id == StringIndex::absent ? -1 : std::int64_t{id});
                }
                return new_array(std::move(ids));
            },
            "texts"_a, "The id of each string of a list, or -1.")
        .def(
            "name",
            [](const StringTable& t, std::int64_t id) {
                if (id < 0 || id >= t.index.size()) throw nb::index_error("no string has this id");
                return to_python(t.index[static_cast<std::uint32_t>(id)]);
            },
            "id"_a, "The string with this id.");
}

nb::tuple finish(const LexiconBuilder& builder) {
    LexiconArrays arrays = unlocked([&] { return builder.finish(); });
    return nb::make_tuple(new_array(std::move(arrays.first)), new_array(std::move(arrays.edges)),
                          new_array(std::move(arrays.node_sets)), new_array(std::move(arrays.set_ptr)),
                          new_array(std::move(arrays.set_lists)));
}

nb::list values_of(const LexiconTable& table, nb::handle list, std::int32_t of_list) {
    const Texts texts(list);
    const auto states = table.lexicon.match(texts.views());
    const std::size_t n = texts.views().size();
    nb::list out;
    for (std::size_t i = 0; i < n; ++i) {
        const std::string value = table.lexicon.describe(states, i, n, of_list);
        if (value.empty()) {
            out.append(nb::none());
        } else {
            out.append(to_python(value));
        }
    }
    return out;
}

nb::object states_of(const LexiconTable& table, nb::handle list) {
    const Texts texts(list);
    const auto states = unlocked([&] { return table.lexicon.match(texts.views()); });
    NewArray<std::uint8_t> out({table.lexicon.lists().size(), texts.views().size()});
    std::copy(states.begin(), states.end(), reinterpret_cast<MatchState*>(out.data()));
    return out.take();
}

void bind_lexicon(nb::module_& m) {
    nb::class_<LexiconBuilder>(m, "LexiconBuilder", "Takes the entries of a lexicon.")
        .def(nb::init<>())
        .def(
            "add",
            [](LexiconBuilder& builder, nb::handle tokens, std::uint32_t list) {
                builder.add(Texts(tokens).views(), list);
            },
            "tokens"_a, "list"_a, "Adds an entry to a list.")
        .def_prop_ro("n_entries", &LexiconBuilder::n_entries)
        .def(
            "tokens", [](const LexiconBuilder& builder) { return arrays_of(builder.tokens()); },
            "(slots, ends, blob) of the tokens.")
        .def("finish", &finish, "(first, edges, node_sets, set_ptr, set_lists)");
    nb::class_<LexiconTable>(m, "LexiconTable", "A lexicon in arrays.")
        .def(nb::init<const StringTable&, std::vector<LexiconTable::Numbers>, std::vector<std::string>>(),
             "tokens"_a, "arrays"_a, "lists"_a)
        .def(
            "find",
            [](const LexiconTable& t, nb::handle tokens) { return t.lexicon.find(Texts(tokens).views()); },
            "tokens"_a, "The numbers of the lists that have an entry.")
        .def("states", &states_of, "tokens"_a, "The state of each token for each list, [lists, T].")
        .def("values", &values_of, "tokens"_a, "list"_a, "What a macro reads at each token, or None.");
}

// [merges, 2]: the first word of the class that stays, and of the one that joins it.
nb::object merges_of(const BrownClusters& clusters) {
    const auto& merges = clusters.merges();
    NewArray<std::int32_t> out({merges.size(), 2});
    for (std::size_t i = 0; i < merges.size(); ++i) {
        out.data()[2 * i] = merges[i].first;
        out.data()[2 * i + 1] = merges[i].second;
    }
    return out.take();
}

void bind_brown_clusters(nb::module_& m) {
    nb::class_<BrownClusters>(m, "BrownClusters", "Merges the words of a text into classes.")
        .def(
            "__init__",
            [](BrownClusters* self, const Array<std::int32_t>& tokens, const Array<std::int64_t>& ptr,
               std::int32_t n_words, std::int32_t n_classes) {
                unlocked([&] { new (self) BrownClusters(view(tokens), view(ptr), n_words, n_classes); });
            },
            "tokens"_a, "ptr"_a, "n_words"_a, "n_classes"_a)
        .def(
            "run",
            [](BrownClusters& clusters, std::int64_t n) { return unlocked([&] { return clusters.run(n); }); },
            "n"_a, "Up to n more merges; whether there are more to come.")
        .def_prop_ro("n_merges", &BrownClusters::n_merges)
        .def("merges", &merges_of, "The merges so far, [merges, 2].");
}

}  // namespace

void bind_knowledge(nb::module_& m) {
    bind_string_table(m);
    bind_lexicon(m);
    bind_brown_clusters(m);
}

}  // namespace crfkit
