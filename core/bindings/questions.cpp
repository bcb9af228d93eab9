// Every question on data sets at the weights of a trained model.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <stdexcept>

#include "answers/chain_potentials.hpp"
#include "answers/pattern_potentials.hpp"
#include "answers/scored_word_lattices.hpp"
#include "base/lists.hpp"
#include "bindings/annotations.hpp"
#include "bindings/answers.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/function_slices.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/span_arrays.hpp"
#include "training/objective.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

std::size_t n_positions(const ScoredSequences& data) {
    return static_cast<std::size_t>(data.design().n_positions());
}

nb::object log_partitions(const ScoredSequences& self, const Maybe<std::int32_t>& labels,
                          const Maybe<std::int64_t>& set_ptr, const Maybe<std::int32_t>& set_labels,
                          int n_threads) {
    const Annotation allowed = annotation_of(labels, set_ptr, set_labels);
    if (labels) check_annotation(self.n_labels(), self.design(), allowed);
    return filled<double>({static_cast<std::size_t>(self.design().n_sequences())}, [&](double* out) {
        self.log_partitions(labels ? &allowed : nullptr, out, n_threads);
    });
}

nb::list k_best_of(const ScoredSequences& self, std::int64_t k, int n_threads) {
    return as_list(unlocked([&] { return self.k_best(k, n_threads); }));
}

nb::object sample_of(const ScoredSequences& self, std::int64_t n, const Array<double>& uniforms,
                     int n_threads) {
    if (n < 0 || uniforms.size() != static_cast<std::size_t>(n) * n_positions(self))
        throw std::invalid_argument("expected a uniform number for each sample and position");
    return filled<std::int32_t>(
        {uniforms.size()}, [&](std::int32_t* labels) { self.sample(n, uniforms.data(), labels, n_threads); });
}

// (log p, own, before, after, left, right, label before, label after)
nb::tuple as_tuple(const LabelContext& of) {
    return nb::make_tuple(of.log_probability, of.own, of.before, of.after, of.left, of.right, of.label_before,
                          of.label_after);
}

nb::tuple explain_arcs(const ScoredSequences& self, std::int64_t n, std::int32_t arc, std::int32_t against) {
    const auto* lattices = dynamic_cast<const ScoredWordLattices*>(&self);
    if (!lattices) throw std::invalid_argument("only word lattices have arcs");
    const ExplainedLabels found = unlocked([&] { return lattices->explain_arcs(n, arc, against); });
    return nb::make_tuple(as_tuple(found.contexts[0]), as_tuple(found.contexts[1]));
}

nb::tuple explain(const ScoredSequences& self, std::int64_t n, std::int64_t i, std::int32_t label,
                  std::int32_t against) {
    const ExplainedLabels found = unlocked([&] { return self.explain(n, i, label, against); });
    return nb::make_tuple(found.labels[0], found.labels[1], as_tuple(found.contexts[0]),
                          as_tuple(found.contexts[1]));
}

// (log Z [E], left [E], right [E], own [E, K], arcs [E, K + 1], probabilities [E, K, L]) of E events; an
// event without any label sequence has zeros beside log Z = −inf.
nb::tuple explain_windows(const ScoredSequences& self, std::int64_t n, std::int64_t first, std::int64_t size,
                          const Array<std::uint8_t>& allowed) {
    const auto found = unlocked([&] { return self.explain_windows(n, first, size, view(allowed)); });
    const std::size_t E = found.size(), K = static_cast<std::size_t>(size),
                      L = static_cast<std::size_t>(self.n_labels());
    NewArray<double> log_z({E}), beginnings({E, K}), own({E, K}), arcs({E, K + 1}), probs({E, K, L});
    const auto write = [](const std::vector<double>& numbers, std::size_t n_numbers, double* out) {
        std::fill_n(out, n_numbers, 0.0);
        std::copy(numbers.begin(), numbers.end(), out);
    };
    for (std::size_t e = 0; e < E; ++e) {
        log_z.data()[e] = found[e].log_partition;
        write(found[e].beginnings, K, beginnings.data() + e * K);
        write(found[e].own, K, own.data() + e * K);
        write(found[e].arcs, K + 1, arcs.data() + e * (K + 1));
        write(found[e].probs, K * L, probs.data() + e * K * L);
    }
    return nb::make_tuple(log_z.take(), beginnings.take(), own.take(), arcs.take(), probs.take());
}

void bind_spans(nb::module_& m, nb::class_<ScoredSequences>& sequences) {
    nb::class_<SpanLabels>(m, "SpanLabels", "Labels read as spans of positions.")
        .def(
            "__init__",
            [](SpanLabels* self, const Array<std::int32_t>& types, const Array<std::uint8_t>& goes_on,
               const Array<std::uint8_t>& follows) {
                new (self) SpanLabels(copy(view(types)), copy(view(goes_on)), copy(view(follows)));
            },
            "types"_a, "goes_on"_a, "follows"_a);
    sequences
        .def(
            "spans",
            [](const ScoredSequences& self, const SpanLabels& labels, double threshold, int n_threads) {
                return as_arrays(unlocked([&] { return self.spans(labels, threshold, n_threads); }));
            },
            "labels"_a, "threshold"_a, "n_threads"_a)
        .def(
            "decoded_spans",
            [](const ScoredSequences& self, const SpanLabels& labels, int n_threads) {
                return as_arrays(unlocked([&] { return self.decoded_spans(labels, n_threads); }));
            },
            "labels"_a, "n_threads"_a)
        .def(
            "n_spans",
            [](const ScoredSequences& self, const SpanLabels& labels, int n_threads) {
                return filled<double>({static_cast<std::size_t>(self.design().n_sequences())},
                                      [&](double* out) { self.n_spans(labels, out, n_threads); });
            },
            "labels"_a, "n_threads"_a);
}

// (emissions [T, L], transitions [L, L] or [T − 1, L, L]) of sequence n.
nb::tuple scores(const ChainPotentials& self, const Design& design, std::int64_t n) {
    const bool known = n >= 0 && n < design.n_sequences();
    const auto T = static_cast<std::size_t>(known ? design.sequence_ptr[n + 1] - design.sequence_ptr[n] : 0);
    const auto L = static_cast<std::size_t>(self.layout().n_labels);
    NewArray<double> emissions({T, L});
    NewArray<double> transitions =
        self.by_position(design) ? NewArray<double>({T ? T - 1 : 0, L, L}) : NewArray<double>({L, L});
    self.scores(design, n, emissions.data(), transitions.data());
    return nb::make_tuple(emissions.take(), transitions.take());
}

// The labels with these ids as a list for each sequence. The tuple cannot change while Python code runs.
nb::list label_lists(const nb::tuple& labels, const Array<std::int32_t>& ids,
                     const Array<std::int64_t>& sequence_ptr) {
    const std::span<const std::int32_t> label_of = view(ids);
    const std::span<const std::int64_t> ptr = view(sequence_ptr);
    check_pointers(ptr, static_cast<std::int64_t>(ptr.size()) - 1, label_of.size(), "sequence_ptr");
    check_range(label_of, 0, static_cast<std::int64_t>(nb::len(labels)), "ids");
    nb::list lists;
    for (std::size_t n = 0; n + 1 < ptr.size(); ++n) {
        const nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(ptr[n + 1] - ptr[n])));
        if (!list.is_valid()) throw nb::python_error();
        for (std::int64_t t = ptr[n]; t < ptr[n + 1]; ++t)
            PyList_SET_ITEM(list.ptr(), t - ptr[n], Py_NewRef(PyTuple_GET_ITEM(labels.ptr(), label_of[t])));
        lists.append(list);
    }
    return lists;
}

}  // namespace

void bind_questions(nb::module_& m) {
    m.def("label_lists", &label_lists, "labels"_a, "ids"_a, "sequence_ptr"_a,
          "The labels with these ids, as a list for each sequence.");
    nb::class_<ScoredSequences> sequences(m, "ScoredSequences",
                                          "A data set at the weights of a trained model.");
    bind_spans(m, sequences);
    sequences.def_prop_ro("n_positions", &n_positions)
        .def_prop_ro("n_sequences", [](const ScoredSequences& self) { return self.design().n_sequences(); })
        .def(
            "decode",
            [](const ScoredSequences& self, int n_threads) {
                return filled<std::int32_t>({n_positions(self)},
                                            [&](std::int32_t* labels) { self.decode(labels, n_threads); });
            },
            "n_threads"_a)
        .def(
            "marginals",
            [](const ScoredSequences& self, int n_threads) {
                return filled<double>({n_positions(self), static_cast<std::size_t>(self.n_labels())},
                                      [&](double* probs) { self.marginals(probs, n_threads); });
            },
            "n_threads"_a)
        .def("log_partitions", &log_partitions, "labels"_a.none(), "set_ptr"_a.none(), "set_labels"_a.none(),
             "n_threads"_a)
        .def("k_best", &k_best_of, "k"_a, "n_threads"_a)
        .def("sample", &sample_of, "n"_a, "uniforms"_a, "n_threads"_a)
        .def("explain", &explain, "n"_a, "i"_a, "label"_a, "against"_a)
        .def("explain_arcs", &explain_arcs, "n"_a, "arc"_a, "against"_a)
        .def("explain_windows", &explain_windows, "n"_a, "first"_a, "size"_a, "allowed"_a);
    nb::class_<ChainPotentials>(m, "ChainPotentials", "The weights of a chain.")
        .def(
            "__init__",
            [](ChainPotentials* self, std::shared_ptr<Layout> layout, const Array<double>& w, bool local) {
                check_size("w", w.size(), layout->n_weights());
                const LockRelease release;
                new (self) ChainPotentials(std::move(layout), w.data(), local);
            },
            "layout"_a, "w"_a, "local"_a = false)
        .def(
            "score",
            [](const ChainPotentials& self, const Design& design, int n_threads) {
                const LockRelease release;
                return self.score(design, n_threads);
            },
            "data"_a, "n_threads"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>())
        .def("scores", &scores, "data"_a, "n"_a);
    nb::class_<PatternPotentials>(m, "PatternPotentials", "The weights of a chain with patterns.")
        .def(
            "__init__",
            [](PatternPotentials* self, std::shared_ptr<Layout> layout, const Array<double>& w,
               std::int64_t first_weight) {
                const LockRelease release;
                new (self) PatternPotentials(std::move(layout), copy(view(w)), first_weight);
            },
            "layout"_a, "w"_a, "first_weight"_a)
        .def(
            "score",
            [](const PatternPotentials& self, std::shared_ptr<Trellises> trellises,
               std::shared_ptr<PythonSlices> functions) {
                const LockRelease release;
                return self.score(std::move(trellises), std::move(functions));
            },
            "trellises"_a, "functions"_a.none(), nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>());
}

}  // namespace crfkit
