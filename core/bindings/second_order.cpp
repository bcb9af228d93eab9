#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <utility>
#include <vector>

#include "bindings/answers.hpp"
#include "bindings/arc_contexts.hpp"
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

SumsOf sums_of(bool projective, bool one_root) {
    return [=] { return projective ? projective_sums(one_root) : spanning_sums(one_root); };
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
        .def(
            "__init__",
            [](CandidateArcs* self, const Array<std::int64_t>& sentence_ptr, const Array<std::int32_t>& heads,
               const Array<std::int32_t>& dependents) {
                CandidateArcs found{copy(view(sentence_ptr)), {}};
                check_size("dependents", dependents.size(), static_cast<std::int64_t>(heads.size()));
                for (std::size_t i = 0; i < heads.size(); ++i)
                    found.arcs.push_back({heads.data()[i], dependents.data()[i]});
                new (self) CandidateArcs(std::move(found));
            },
            "sentence_ptr"_a, "heads"_a, "dependents"_a)
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
               bool one_root, int n_threads) {
                const auto n = static_cast<std::size_t>(treebank.n_sentences());
                const KnownTrees known{copy(view(heads)), std::vector<std::int32_t>(heads.size(), -1),
                                       std::vector<double>(n, 1.0)};
                known.check(treebank, 1);
                return unlocked([&] { return find_candidates(self, treebank, &known, one_root, n_threads); });
            },
            "treebank"_a, "heads"_a, "one_root"_a, "n_threads"_a,
            "The arcs that are left over, with those of the trees that are known (−1: unknown).");
}

void bind_answers(nb::module_& m) {
    const auto threads = "n_threads"_a = 1;
    nb::class_<SecondOrderParser>(m, "SecondOrderParser")
        .def(
            "__init__",
            [](SecondOrderParser* self, std::shared_ptr<PruningModel> pruning,
               std::shared_ptr<ArcLayout> layout, const Array<double>& w, bool projective, bool one_root) {
                check_size("w", w.size(), layout->n_weights());
                new (self) SecondOrderParser(std::move(pruning), std::move(layout), w.data(), one_root,
                                             sums_of(projective, one_root));
            },
            "pruning"_a, "layout"_a, "w"_a, "projective"_a, "one_root"_a)
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
            "bounded_decode",
            [](const SecondOrderParser& self, const Treebank& treebank, std::int64_t most_iterations,
               int n_threads) {
                const auto found =
                    unlocked([&] { return self.bounded_best(treebank, most_iterations, n_threads); });
                nb::list out;
                for (const auto& [tree, bound, n_iterations] : found)
                    out.append(nb::make_tuple(tree.score, bound, n_iterations, new_array(tree.heads),
                                              new_array(tree.labels)));
                return out;
            },
            "treebank"_a, "most_iterations"_a, threads,
            "(score, bound, iterations, heads, labels) of the best tree of each sentence that was found; no "
            "tree "
            "scores more than the bound.")
        .def(
            "k_best",
            [](const SecondOrderParser& self, const Treebank& treebank, std::int64_t k, int n_threads) {
                return as_list(unlocked([&] { return self.k_best(treebank, k, n_threads); }));
            },
            "treebank"_a, "k"_a, threads,
            "(score, heads, labels) of the k best trees of each sentence, best first.")
        .def(
            "log_partitions",
            [](const SecondOrderParser& self, const Treebank& treebank, int n_threads) {
                return filled<double>({static_cast<std::size_t>(treebank.n_sentences())},
                                      [&](double* out) { self.log_partitions(treebank, out, n_threads); });
            },
            "treebank"_a, threads, "log Z of every sentence, [N].")
        .def(
            "log_likelihoods",
            [](const SecondOrderParser& self, const Treebank& treebank, const Array<std::int32_t>& heads,
               const Array<std::int32_t>& labels, bool add_arcs, int n_threads) {
                const KnownTrees known = known_trees(treebank, heads, labels, self.layout().n_labels());
                return filled<double>({static_cast<std::size_t>(treebank.n_sentences())}, [&](double* out) {
                    self.log_likelihoods(treebank, known, add_arcs, out, n_threads);
                });
            },
            "treebank"_a, "heads"_a, "labels"_a, "add_arcs"_a = false, threads,
            "log p of the trees that agree (−1: unknown), [N]; with add_arcs the arcs that are known count "
            "as "
            "candidates too.")
        .def("explain_arc", &explain_arc<SecondOrderParser>, "treebank"_a, "n"_a, "head"_a, "dependent"_a,
             "Templates, the sums of their weights, and the scores of labels of one arc.")
        .def(
            "explain_heads",
            [](const SecondOrderParser& self, const Treebank& treebank, std::int64_t n,
               std::int64_t dependent, const Array<std::int32_t>& heads) {
                if (n < 0 || n >= treebank.n_sentences()) throw nb::index_error("there is no such sentence");
                const auto found =
                    unlocked([&] { return self.explain(treebank, n, dependent, view(heads)); });
                nb::list out;
                for (const HeadContext& context : found)
                    out.append(
                        nb::make_tuple(context.log_probability, context.siblings, context.grandparents));
                return out;
            },
            "treebank"_a, "n"_a, "dependent"_a, "heads"_a,
            "(log p, E[siblings], E[grandparents]) of a word with each of these heads.")
        .def(
            "parts",
            [](const SecondOrderParser& self, const Treebank& treebank, std::int64_t n) {
                if (n < 0 || n >= treebank.n_sentences()) throw nb::index_error("there is no such sentence");
                const ScoredParts found = unlocked([&] { return self.parts(treebank, n); });
                NewArray<std::int32_t> arcs({found.arcs.size(), 2}), others({found.second_order.size(), 5});
                for (std::size_t i = 0; i < found.arcs.size(); ++i) {
                    arcs.data()[2 * i] = found.arcs[i].head;
                    arcs.data()[2 * i + 1] = found.arcs[i].dependent;
                }
                for (std::size_t i = 0; i < found.second_order.size(); ++i) {
                    const SecondOrderPart& part = found.second_order[i];
                    const std::int32_t row[] = {static_cast<std::int32_t>(part.kind),
                                                static_cast<std::int32_t>(part.side), part.head, part.other,
                                                part.dependent};
                    std::copy_n(row, 5, others.data() + 5 * i);
                }
                return nb::make_tuple(arcs.take(), others.take(), new_array(found.scores));
            },
            "treebank"_a, "n"_a,
            "The parts of sentence n: arcs [A, 2] (head, dependent), those of second order [P, 5] (0 "
            "siblings, 1 "
            "grandparent; 0 left, 1 right; head; sibling or grandparent; dependent; −1: none), and scores: "
            "[A · R] of "
            "labelled arcs, then [P].")
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
           const CandidateArcs& candidates, bool projective, bool one_root, int n_threads) {
            KnownTrees trees{copy(view(heads)), copy(view(labels)), copy(view(weights))};
            const LockRelease release;
            return second_order_loss(std::move(layout), std::move(treebank), std::move(trees), candidates,
                                     sums_of(projective, one_root), n_threads);
        },
        "layout"_a, "treebank"_a, "heads"_a, "labels"_a, "weights"_a, "candidates"_a, "projective"_a,
        "one_root"_a, "n_threads"_a);
}

}  // namespace crfkit
