// Semi-Markov chains: types of segments, and data sets of segmentations.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include "answers/scored_segments.hpp"
#include "bindings/annotations.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/function_slices.hpp"
#include "bindings/lock_release.hpp"
#include "segments/segment_loss.hpp"
#include "segments/segment_parts.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

std::unique_ptr<ScoredSequences> score(std::shared_ptr<SegmentData> data, const Array<double>& w,
                                       int n_threads) {
    std::vector<double> weights = copy(view(w));
    const LockRelease release;
    auto parts = std::make_shared<const SegmentParts>(data, std::nullopt, n_threads);
    if (static_cast<std::int64_t>(weights.size()) != parts->n_weights)
        throw std::invalid_argument("the model has " + std::to_string(parts->n_weights) + " weights, got " +
                                    std::to_string(weights.size()));
    if (data->functions || data->design->is_split() || data->design->arcs.ptr.size() > 0 ||
        !data->layout->facets.empty())
        return std::make_unique<ScoredParts>(*data->layout, *data->design, std::move(parts),
                                             std::move(weights));
    return std::make_unique<ScoredSegments>(data, std::move(parts), std::move(weights));
}

}  // namespace

void bind_segments(nb::module_& m) {
    nb::class_<SegmentModel>(m, "SegmentModel", "The types of segments, their labels, lengths and weights.")
        .def(
            "__init__",
            [](SegmentModel* self, const Array<std::int32_t>& first, const Array<std::int32_t>& inside,
               const Array<std::int32_t>& last, const Array<std::int32_t>& single,
               const Array<std::int32_t>& transition, const Array<std::int64_t>& n_lengths,
               const Array<std::uint8_t>& unlimited, const Array<std::int64_t>& length_begin,
               const Array<std::int64_t>& n_own_lengths, const Array<std::uint8_t>& exists, bool repeats,
               std::int64_t pairs_begin, const Array<std::int64_t>& pair_ptr,
               const Array<std::int32_t>& pair_types) {
                new (self) SegmentModel{copy(view(first)),
                                        copy(view(inside)),
                                        copy(view(last)),
                                        copy(view(single)),
                                        copy(view(transition)),
                                        copy(view(n_lengths)),
                                        copy(view(unlimited)),
                                        copy(view(length_begin)),
                                        copy(view(n_own_lengths)),
                                        copy(view(exists)),
                                        repeats,
                                        pairs_begin,
                                        copy(view(pair_ptr)),
                                        copy(view(pair_types))};
            },
            "first"_a, "inside"_a, "last"_a, "single"_a, "transition"_a, "n_lengths"_a, "unlimited"_a,
            "length_begin"_a, "n_own_lengths"_a, "exists"_a, "repeats"_a, "pairs_begin"_a, "pair_ptr"_a,
            "pair_types"_a);
    nb::class_<SegmentData>(m, "SegmentData", "A data set of segmentations.")
        .def(
            "__init__",
            [](SegmentData* self, std::shared_ptr<Layout> layout, std::shared_ptr<Design> design,
               const SegmentModel& model, const Maybe<std::int64_t>& cell_ptr,
               const Maybe<std::int32_t>& lengths, const Maybe<std::int64_t>& ptr,
               const Maybe<std::int32_t>& ids, const Maybe<double>& values,
               std::shared_ptr<PythonSlices> functions, std::int64_t n_outputs, bool of_pairs) {
                new (self) SegmentData{std::move(layout),
                                       std::move(design),
                                       model,
                                       {copy(view(cell_ptr)), copy(view(lengths)), copy(view(ptr)),
                                        copy(view(ids)), copy(view(values))},
                                       std::move(functions),
                                       n_outputs,
                                       of_pairs};
            },
            "layout"_a, "design"_a, "model"_a, "cell_ptr"_a.none(), "lengths"_a.none(), "ptr"_a.none(),
            "ids"_a.none(), "values"_a.none(), "functions"_a.none(), "n_outputs"_a, "of_pairs"_a)
        .def("score", &score, "w"_a, "n_threads"_a, nb::keep_alive<0, 1>(),
             "The sequences at weights, for questions.");
    m.def(
        "segment_loss",
        [](std::shared_ptr<SegmentData> data, const Array<std::int32_t>& labels,
           const Maybe<std::int64_t>& set_ptr, const Maybe<std::int32_t>& set_labels,
           const Array<double>& weights, bool single_precision, int n_threads) {
            Annotation gold = annotation_of(labels, set_ptr, set_labels, copy(view(weights)));
            const LockRelease release;
            return segment_loss(std::move(data), std::move(gold), single_precision, n_threads);
        },
        "data"_a, "labels"_a, "set_ptr"_a.none(), "set_labels"_a.none(), "weights"_a, "single_precision"_a,
        "n_threads"_a);
}

}  // namespace crfkit
