#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <utility>
#include <vector>

#include "bindings/answers.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/trees_by_sentence.hpp"
#include "trees/lifting.hpp"
#include "trees/second_order_loss.hpp"
#include "trees/second_order_parser.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

KnownTrees known_trees(const Treebank& treebank, const Array<std::int32_t>& heads,
                       const Array<std::int32_t>& labels, std::int32_t n_labels) {
    const auto n = static_cast<std::size_t>(treebank.n_sentences());
    KnownTrees known{copy(view(heads)), copy(view(labels)), std::vector<double>(n, 1.0)};
    known.check(treebank, n_labels);
    return known;
}

SumsOf sums_of(bool one_root) {
    return [one_root] { return projective_sums(one_root); };
}

// Heads [T] of all sentences without crossing arcs, where all are known.
nb::object lifted_heads(const Treebank& treebank, const Array<std::int32_t>& heads) {
    check_size("heads", heads.size(), treebank.n_words());
    NewArray<std::int32_t> out({heads.size()});
    std::copy_n(heads.data(), heads.size(), out.data());
    unlocked([&] {
        for (std::int64_t n = 0; n < treebank.n_sentences(); ++n) {
            const std::span tree(out.data() + treebank.sentence_ptr[n],
                                 static_cast<std::size_t>(treebank.length(n)));
            if (std::none_of(tree.begin(), tree.end(), [](std::int32_t head) { return head < 0; }))
                lift_crossing_arcs(tree);
        }
    });
    return out.take();
}

void bind_pruning(nb::module_& m) {
    m.def("lifted_heads", &lifted_heads, "treebank"_a, "heads"_a);
    nb::class_<CandidateArcs>(m, "CandidateArcs")
        .def_prop_ro("sentence_ptr", [](const CandidateArcs& self) { return new_array(self.sentence_ptr); })
        .def_prop_ro("arcs", [](const CandidateArcs& self) {
            NewArray<std::int32_t> out({self.arcs.size(), 2});
            for (std::size_t i = 0; i < self.arcs.size(); ++i) {
                out.data()[2 * i] = self.arcs[i].head;
                out.data()[2 * i + 1] = self.arcs[i].dependent;
            }
            return out.take();
        });
    nb::class_<PruningModel>(m, "PruningModel")
        .def(
            "__init__",
            [](PruningModel* self, std::shared_ptr<ArcLayout> layout, const Array<double>& w,
               double threshold, std::int64_t most) {
                check_size("w", w.size(), layout->n_weights());
                new (self) PruningModel(std::move(layout), w.data(), {threshold, most});
            },
            "layout"_a, "w"_a, "threshold"_a, "most"_a)
        .def(
            "candidates",
            [](const PruningModel& self, const Treebank& treebank, const Array<std::int32_t>& heads,
               const Array<std::int32_t>& labels, bool one_root, int n_threads) {
                const KnownTrees known = known_trees(treebank, heads, labels, self.layout->n_labels());
                return unlocked([&] { return find_candidates(self, treebank, &known, one_root, n_threads); });
            },
            "treebank"_a, "heads"_a, "labels"_a, "one_root"_a, "n_threads"_a,
            "The arcs that are left over, with those of the trees that are known (−1: unknown).");
}

void bind_answers(nb::module_& m) {
    const auto threads = "n_threads"_a = 1;
    nb::class_<SecondOrderParser>(m, "SecondOrderParser")
        .def(
            "__init__",
            [](SecondOrderParser* self, std::shared_ptr<PruningModel> pruning,
               std::shared_ptr<ArcLayout> layout, const Array<double>& w, bool one_root) {
                check_size("w", w.size(), layout->n_weights());
                new (self) SecondOrderParser(std::move(pruning), std::move(layout), w.data(), one_root,
                                             sums_of(one_root));
            },
            "pruning"_a, "layout"_a, "w"_a, "one_root"_a)
        .def(
            "decode",
            [](const SecondOrderParser& self, const Treebank& treebank, bool minimum_risk, int n_threads) {
                const auto n_words = static_cast<std::size_t>(treebank.n_words());
                NewArray<std::int32_t> heads({n_words}), labels({n_words});
                unlocked([&] { self.best(treebank, minimum_risk, heads.data(), labels.data(), n_threads); });
                return nb::make_tuple(heads.take(), labels.take());
            },
            "treebank"_a, "minimum_risk"_a = false, threads,
            "Heads and labels [T] of the best trees, or of those with the most arcs right in expectation.")
        .def(
            "marginals",
            [](const SecondOrderParser& self, const Treebank& treebank, bool labelled, int n_threads) {
                return by_sentence(treebank, labelled ? self.layout().n_labels() : 1, labelled,
                                   [&](double* out) { self.marginals(treebank, labelled, out, n_threads); });
            },
            "treebank"_a, "labelled"_a = false, threads,
            "P(h → m) of every sentence, or P(h → m with label r).");
}

}  // namespace

void bind_second_order(nb::module_& m) {
    bind_pruning(m);
    bind_answers(m);
    m.def(
        "second_order_loss",
        [](std::shared_ptr<ArcLayout> layout, std::shared_ptr<Treebank> treebank,
           const Array<std::int32_t>& heads, const Array<std::int32_t>& labels, const Array<double>& weights,
           const CandidateArcs& candidates, bool one_root, int n_threads) {
            KnownTrees trees{copy(view(heads)), copy(view(labels)), copy(view(weights))};
            const LockRelease release;
            return second_order_loss(std::move(layout), std::move(treebank), std::move(trees), candidates,
                                     sums_of(one_root), n_threads);
        },
        "layout"_a, "treebank"_a, "heads"_a, "labels"_a, "weights"_a, "candidates"_a, "one_root"_a,
        "n_threads"_a);
}

}  // namespace crfkit
