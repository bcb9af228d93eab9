// Data sets of word lattices, their loss and what answers questions on them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <utility>
#include <vector>

#include "answers/scored_word_lattices.hpp"
#include "bindings/annotations.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "segments/word_lattice.hpp"
#include "segments/word_lattice_loss.hpp"
#include "segments/word_lattice_parts.hpp"
#include "training/part_loss.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

void bind_word_lattices(nb::module_& m) {
    nb::class_<WordLattices>(m, "WordLattices", "A data set whose inputs list arcs.")
        .def(
            "__init__",
            [](WordLattices* self, std::shared_ptr<Layout> layout, std::shared_ptr<Design> design,
               const Array<std::int64_t>& lengths, const Array<std::int64_t>& starts,
               const Array<std::int64_t>& ends, const Array<std::int32_t>& labels,
               const Array<std::int32_t>& outcomes, const Maybe<std::uint8_t>& exists, std::int32_t n_labels,
               const Array<std::int64_t>& keys, const Array<std::int64_t>& weight_ptr,
               const Array<std::int32_t>& weights, const Maybe<double>& values) {
                WordArcs arcs{copy(view(lengths)), copy(view(starts)),   copy(view(ends)),
                              copy(view(labels)),  copy(view(outcomes)), copy(view(exists))};
                WordTransitions transitions{n_labels, copy(view(keys)), copy(view(weight_ptr)),
                                            copy(view(weights)), copy(view(values))};
                const LockRelease release;
                new (self) WordLattices(std::move(layout), std::move(design), std::move(arcs),
                                        std::move(transitions));
            },
            "layout"_a, "design"_a, "lengths"_a, "starts"_a, "ends"_a, "labels"_a, "outcomes"_a,
            "exists"_a.none(), "n_labels"_a, "keys"_a, "weight_ptr"_a, "weights"_a,
            "values"_a.none() = nb::none())
        .def(
            "score",
            [](std::shared_ptr<WordLattices> self, const Array<double>& w,
               int /*n_threads*/) -> std::unique_ptr<ScoredSequences> {
                std::vector<double> weights = copy(view(w));
                const LockRelease release;
                return std::make_unique<ScoredWordLattices>(std::move(self), std::move(weights));
            },
            "w"_a, "n_threads"_a, nb::keep_alive<0, 1>(), "The lattices at weights, for questions.");
    m.def(
        "word_lattice_loss",
        [](std::shared_ptr<WordLattices> data, const Array<std::int32_t>& labels,
           const Array<double>& weights, std::int64_t n_weights, int n_threads,
           bool by_parts) -> std::unique_ptr<DataLoss> {
            Annotation gold{copy(view(labels)), {}, {}, copy(view(weights))};
            const LockRelease release;
            if (by_parts)
                return std::make_unique<PartLoss>(
                    std::make_shared<WordLatticeParts>(std::move(data), std::move(gold), n_weights),
                    n_threads);
            return std::make_unique<WordLatticeLoss>(std::move(data), std::move(gold), n_weights, n_threads);
        },
        "data"_a, "labels"_a, "weights"_a, "n_weights"_a, "n_threads"_a, "by_parts"_a = false);
}

}  // namespace crfkit
