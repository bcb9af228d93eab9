#include "training/online.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>

#include "bindings/annotations.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "trees/mistakes.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

void bind_online(nb::module_& m) {
    nb::class_<Online>(m, "Online").def_prop_ro("n_weights", &Online::n_weights);
    nb::class_<ChainOnline, Online>(m, "ChainOnline")
        .def(
            "__init__",
            [](ChainOnline* self, std::shared_ptr<Layout> layout, std::shared_ptr<Design> design,
               const Array<std::int32_t>& labels, const Maybe<std::int64_t>& set_ptr,
               const Maybe<std::int32_t>& set_labels, const Array<double>& weights, bool single_precision,
               int n_threads) {
                Annotation gold = annotation_of(labels, set_ptr, set_labels, copy(view(weights)));
                const LockRelease release;
                new (self) ChainOnline(std::move(layout), std::move(design), std::move(gold),
                                       single_precision, n_threads);
            },
            "layout"_a, "design"_a, "labels"_a, "set_ptr"_a.none(), "set_labels"_a.none(), "weights"_a,
            "single_precision"_a, "n_threads"_a);
    nb::class_<TreeOnline, Online>(m, "TreeOnline")
        .def(
            "__init__",
            [](TreeOnline* self, std::shared_ptr<ArcLayout> layout, std::shared_ptr<Treebank> treebank,
               const Array<std::int32_t>& heads, const Array<std::int32_t>& labels,
               const Array<double>& weights, bool one_root) {
                const LockRelease release;
                new (self) TreeOnline(std::move(layout), std::move(treebank),
                                      {copy(view(heads)), copy(view(labels)), copy(view(weights))}, one_root);
            },
            "layout"_a, "treebank"_a, "heads"_a, "labels"_a, "weights"_a, "one_root"_a);
}

}  // namespace crfkit
