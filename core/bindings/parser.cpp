#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "bindings/answers.hpp"
#include "bindings/arc_contexts.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/python_objects.hpp"
#include "bindings/trees_by_sentence.hpp"
#include "trees/parser.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

constexpr Py_ssize_t kTexts = 5;  // form, lemma, upos, xpos, feats

// Sentences are lists of words, words tuples that begin with their five texts.
void read_sentences(Treebank& treebank, const nb::list& sentences) {
    std::string texts[kTexts];
    for (nb::handle sentence : sentences) {
        if (!PyList_Check(sentence.ptr()))
            throw InvalidInput("a sentence is " + described(sentence.ptr()) + ", expected a list of words");
        if (PyErr_CheckSignals() < 0) throw nb::python_error();
        treebank.begin_sentence();
        const auto [words, n_words] = items_of(sentence.ptr());
        for (Py_ssize_t i = 0; i < n_words; ++i) {
            if (!PyTuple_Check(words[i]) || PyTuple_GET_SIZE(words[i]) < kTexts)
                throw InvalidInput("a word is " + described(words[i]) + ", expected a crfkit.data.Word");
            for (Py_ssize_t k = 0; k < kTexts; ++k) {
                PyObject* text = PyTuple_GET_ITEM(words[i], k);
                if (!PyUnicode_Check(text))
                    throw InvalidInput("a column of a word is " + described(text) + ", expected a string");
                texts[k] = to_bytes(text);
            }
            treebank.add({texts[0], texts[1], texts[2], texts[3], texts[4]});
        }
    }
}

std::vector<Key> keys_of(const Array<std::int64_t>& keys) {
    std::vector<Key> out(keys.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<Key>(keys.data()[i]);
    return out;
}

// Keys as signed numbers of the same bits: what model files can hold.
nb::object signed_keys(const std::vector<Key>& keys) {
    return new_array(std::vector<std::int64_t>(keys.begin(), keys.end()));
}

KnownTrees known_trees(const Array<std::int32_t>& heads, const Array<std::int32_t>& labels,
                       std::vector<double> weights) {
    return {copy(view(heads)), copy(view(labels)), std::move(weights)};
}

void bind_data(nb::module_& m) {
    nb::class_<Treebank>(m, "Treebank",
                         "Sentences with the heads and labels of their words, as the core reads them.")
        .def(
            "__init__",
            [](Treebank* self, const nb::list& sentences,
               const std::optional<std::vector<std::string>>& paths,
               const std::optional<Matrix<double>>& vectors, const Maybe<std::int32_t>& vector_ids) {
                Treebank treebank;
                read_sentences(treebank, sentences);
                if (paths) treebank.set_paths(*paths);
                if (vectors && vector_ids)
                    treebank.set_vectors(static_cast<std::int64_t>(vectors->shape(1)),
                                         {vectors->data(), vectors->size()}, view(*vector_ids));
                new (self) Treebank(std::move(treebank));
            },
            "sentences"_a, "paths"_a = nb::none(), "vectors"_a = nb::none(), "vector_ids"_a = nb::none(),
            "paths: of all words in a tree of word clusters, empty where they have none; vectors [·, K]: "
            "word "
            "t has row vector_ids[t], or none where it is −1.")
        .def_prop_ro("n_sentences", &Treebank::n_sentences)
        .def_prop_ro("sentence_ptr", [](const Treebank& self) { return new_array(self.sentence_ptr); });
    nb::class_<VectorLayout>(m, "VectorLayout", "Blocks of weights of word vectors.")
        .def(
            "__init__",
            [](VectorLayout* self, std::int64_t size, const Array<std::int64_t>& keys,
               const Array<std::int64_t>& ptr, const Array<std::int32_t>& labels, std::int32_t n_labels) {
                new (self) VectorLayout(size, keys_of(keys), copy(view(ptr)), copy(view(labels)), n_labels);
            },
            "size"_a, "keys"_a, "ptr"_a, "labels"_a, "n_labels"_a)
        .def_ro("size", &VectorLayout::size)
        .def_prop_ro("n_weights", &VectorLayout::n_weights)
        .def_prop_ro("keys", [](const VectorLayout& self) { return signed_keys(self.keys); })
        .def_prop_ro("ptr", [](const VectorLayout& self) { return new_array(self.ptr); })
        .def_prop_ro("labels", [](const VectorLayout& self) { return new_array(self.labels); });
    nb::class_<ArcLayout>(m, "ArcLayout")
        .def(
            "__init__",
            [](ArcLayout* self, std::int32_t n_labels, const Array<std::int64_t>& arc_keys,
               const Array<std::int64_t>& label_keys, const Array<std::int64_t>& pair_ptr,
               const Array<std::int32_t>& pair_labels, bool coarse,
               const std::optional<VectorLayout>& vectors) {
                new (self) ArcLayout(n_labels, keys_of(arc_keys), keys_of(label_keys), copy(view(pair_ptr)),
                                     copy(view(pair_labels)), coarse, vectors.value_or(VectorLayout{}));
            },
            "n_labels"_a, "arc_keys"_a, "label_keys"_a, "pair_ptr"_a, "pair_labels"_a, "coarse"_a = false,
            "vectors"_a = nb::none())
        .def_static(
            "learn",
            [](const Treebank& treebank, const Array<std::int32_t>& heads, const Array<std::int32_t>& labels,
               std::int32_t n_labels, std::int64_t min_count, int order) {
                const std::vector<double> weights(static_cast<std::size_t>(treebank.n_sentences()), 1.0);
                const KnownTrees trees = known_trees(heads, labels, weights);
                const LockRelease release;
                return std::shared_ptr<ArcLayout>(
                    new ArcLayout(ArcLayout::learn(treebank, trees, n_labels, min_count, order)));
            },
            "treebank"_a, "heads"_a, "labels"_a, "n_labels"_a, "min_count"_a, "order"_a = 1)
        .def_static(
            "learn_coarse",
            [](const Treebank& treebank, const Array<std::int32_t>& heads, std::int64_t min_count) {
                const auto n = static_cast<std::size_t>(treebank.n_sentences());
                const KnownTrees trees{copy(view(heads)), std::vector<std::int32_t>(heads.size(), -1),
                                       std::vector<double>(n, 1.0)};
                trees.check(treebank, 1);
                const LockRelease release;
                return std::shared_ptr<ArcLayout>(
                    new ArcLayout(ArcLayout::learn_coarse(treebank, trees, min_count)));
            },
            "treebank"_a, "heads"_a, "min_count"_a)
        .def_prop_ro("is_coarse", &ArcLayout::is_coarse)
        .def_prop_ro("n_labels", &ArcLayout::n_labels)
        .def_prop_ro("n_weights", &ArcLayout::n_weights)
        .def_prop_ro("arc_keys", [](const ArcLayout& self) { return signed_keys(self.arc_keys); })
        .def_prop_ro("label_keys", [](const ArcLayout& self) { return signed_keys(self.label_keys); })
        .def_prop_ro("pair_ptr", [](const ArcLayout& self) { return new_array(self.pair_ptr); })
        .def_prop_ro("pair_labels", [](const ArcLayout& self) { return new_array(self.pair_labels); })
        .def_prop_ro("vectors", [](const ArcLayout& self) { return self.vectors; });
}

void bind_answers(nb::module_& m) {
    const auto threads = "n_threads"_a = 1;
    nb::class_<TreeParser>(m, "TreeParser")
        .def(
            "__init__",
            [](TreeParser* self, std::shared_ptr<ArcLayout> layout, const Array<double>& w, bool one_root) {
                check_size("w", w.size(), layout->n_weights());
                new (self) TreeParser(std::move(layout), w.data(), one_root);
            },
            "layout"_a, "w"_a, "one_root"_a)
        .def(
            "decode",
            [](const TreeParser& self, const Treebank& treebank, bool minimum_risk, int n_threads) {
                const auto n_words = static_cast<std::size_t>(treebank.n_words());
                NewArray<std::int32_t> heads({n_words}), labels({n_words});
                unlocked([&] { self.best(treebank, minimum_risk, heads.data(), labels.data(), n_threads); });
                return nb::make_tuple(heads.take(), labels.take());
            },
            "treebank"_a, "minimum_risk"_a = false, threads,
            "Heads and labels [T] of the best trees, or of those with the most arcs right in expectation.")
        .def(
            "k_best",
            [](const TreeParser& self, const Treebank& treebank, std::int64_t k, int n_threads) {
                return as_list(unlocked([&] { return self.k_best(treebank, k, n_threads); }));
            },
            "treebank"_a, "k"_a, threads,
            "(score, heads, labels) of the k best trees of each sentence, best first.")
        .def(
            "log_partitions",
            [](const TreeParser& self, const Treebank& treebank, const Maybe<std::int32_t>& heads,
               const Maybe<std::int32_t>& labels, int n_threads) {
                const auto n = static_cast<std::size_t>(treebank.n_sentences());
                KnownTrees known;
                if (heads && labels) {
                    known = known_trees(*heads, *labels, std::vector<double>(n, 1.0));
                    known.check(treebank, self.layout().n_labels());
                }
                return filled<double>({n}, [&](double* out) {
                    self.log_partitions(treebank, heads && labels ? &known : nullptr, out, n_threads);
                });
            },
            "treebank"_a, "heads"_a = nb::none(), "labels"_a = nb::none(), threads,
            "log Z of every sentence, [N]; with heads and labels (−1: unknown), over the trees that agree.")
        .def(
            "marginals",
            [](const TreeParser& self, const Treebank& treebank, bool labelled, int n_threads) {
                return by_sentence(treebank, labelled ? self.layout().n_labels() : 1, labelled,
                                   [&](double* out) { self.marginals(treebank, labelled, out, n_threads); });
            },
            "treebank"_a, "labelled"_a = false, threads,
            "P(h → m) of every sentence, or P(h → m with label r).")
        .def(
            "scores",
            [](const TreeParser& self, const Treebank& treebank, int n_threads) {
                return by_sentence(treebank, self.layout().n_labels(), true,
                                   [&](double* out) { self.scores(treebank, out, n_threads); });
            },
            "treebank"_a, threads, "Scores of the labelled arcs of every sentence.")
        .def("explain_arc", &explain_arc<TreeParser>, "treebank"_a, "n"_a, "head"_a, "dependent"_a,
             "Templates, the sums of their weights, and the scores of labels of one arc.");
}

}  // namespace

void bind_parser(nb::module_& m) {
    bind_data(m);
    bind_answers(m);
}

}  // namespace crfkit
