// Losses of data sets, and the objective that they are minimised in.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "bindings/annotations.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/function_slices.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/python_loss.hpp"
#include "lattice/function_loss.hpp"
#include "losses/chain_loss.hpp"
#include "patterns/pattern_loss.hpp"
#include "training/fixed_weights.hpp"
#include "training/objective.hpp"
#include "training/sharded_loss.hpp"
#include "training/stored_shards.hpp"
#include "trees/tree_loss.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

void bind_kinds(nb::module_& m) {
    m.def(
        "chain_loss",
        [](std::shared_ptr<Layout> layout, std::shared_ptr<Design> design, const Array<std::int32_t>& labels,
           const Maybe<std::int64_t>& set_ptr, const Maybe<std::int32_t>& set_labels,
           const Array<double>& weights, bool single_precision, int n_threads) {
            Annotation gold = annotation_of(labels, set_ptr, set_labels, copy(view(weights)));
            const LockRelease release;
            return chain_loss(std::move(layout), std::move(design), std::move(gold), single_precision,
                              n_threads);
        },
        "layout"_a, "design"_a, "labels"_a, "set_ptr"_a.none(), "set_labels"_a.none(), "weights"_a,
        "single_precision"_a, "n_threads"_a);
    m.def(
        "pattern_loss",
        [](std::shared_ptr<Trellises> trellises, std::shared_ptr<PythonSlices> functions,
           const Array<std::int32_t>& labels, const Maybe<std::int64_t>& set_ptr,
           const Maybe<std::int32_t>& set_labels, const Array<double>& weights, std::int64_t n_weights,
           bool single_precision, int n_threads) {
            Annotation gold = annotation_of(labels, set_ptr, set_labels, copy(view(weights)));
            const LockRelease release;
            return pattern_loss(std::move(trellises), std::move(functions), std::move(gold), n_weights,
                                single_precision, n_threads);
        },
        "trellises"_a, "functions"_a.none(), "labels"_a, "set_ptr"_a.none(), "set_labels"_a.none(),
        "weights"_a, "n_weights"_a, "single_precision"_a, "n_threads"_a);
    m.def(
        "function_loss",
        [](std::shared_ptr<PythonSlices> slices, const Array<std::int64_t>& sequence_ptr,
           const Array<std::int32_t>& labels, const Maybe<std::int64_t>& set_ptr,
           const Maybe<std::int32_t>& set_labels, const Array<double>& weights, std::int64_t n_weights,
           int n_threads) {
            return function_loss(std::move(slices), copy(view(sequence_ptr)),
                                 annotation_of(labels, set_ptr, set_labels, copy(view(weights))), n_weights,
                                 n_threads);
        },
        "slices"_a, "sequence_ptr"_a, "labels"_a, "set_ptr"_a.none(), "set_labels"_a.none(), "weights"_a,
        "n_weights"_a, "n_threads"_a);
    m.def(
        "tree_loss",
        [](std::shared_ptr<ArcLayout> layout, std::shared_ptr<Treebank> treebank,
           const Array<std::int32_t>& heads, const Array<std::int32_t>& labels, const Array<double>& weights,
           bool one_root, int n_threads) {
            KnownTrees trees{copy(view(heads)), copy(view(labels)), copy(view(weights))};
            const LockRelease release;
            return tree_loss(std::move(layout), std::move(treebank), std::move(trees), one_root, n_threads);
        },
        "layout"_a, "treebank"_a, "heads"_a, "labels"_a, "weights"_a, "one_root"_a, "n_threads"_a);
    m.def(
        "sharded_loss",
        [](std::vector<std::shared_ptr<DataLoss>> losses) -> std::unique_ptr<DataLoss> {
            auto shards = std::make_unique<ShardsInMemory>(losses);
            return std::make_unique<ShardedLoss>(std::move(shards), losses[0]->n_weights,
                                                 losses[0]->n_threads);
        },
        "losses"_a);
    m.def(
        "stored_loss",
        [](std::vector<std::int64_t> shard_ptr, nb::callable make, std::int64_t n_weights,
           const std::string& scratch, int n_threads) -> std::unique_ptr<DataLoss> {
            if (shard_ptr.size() < 2) throw std::invalid_argument("there are no shards");
            auto shards = std::make_unique<StoredShards>(
                std::move(shard_ptr),
                [make = std::move(make), n_weights](std::int64_t i) {
                    const LockTaken lock;
                    auto loss = nb::cast<std::shared_ptr<DataLoss>>(make(i));
                    check_size("weights of a shard", static_cast<std::size_t>(loss->n_weights), n_weights);
                    return loss;
                },
                scratch);
            return std::make_unique<ShardedLoss>(std::move(shards), n_weights, n_threads);
        },
        "shard_ptr"_a, "make"_a, "n_weights"_a, "scratch"_a, "n_threads"_a);
}

void bind_python_loss(nb::module_& m) {
    nb::class_<PythonLoss, DataLoss>(m, "PythonLoss")
        .def(nb::init<std::int64_t, std::int64_t, int, nb::callable, nb::callable, nb::callable>(),
             "n_weights"_a, "n_sequences"_a, "n_threads"_a, "evaluate"_a, "hessian_vector"_a, "refine"_a);
    m.def(
        "evaluate_loss",
        [](DataLoss& loss, const Array<double>& w, const Changed<double>& gradient) {
            check_size("w", w.size(), loss.n_weights);
            check_size("gradient", gradient.size(), loss.n_weights);
            return unlocked([&] { return loss.evaluate(w.data(), gradient.data()); });
        },
        "loss"_a, "w"_a, "gradient"_a.noconvert());
    m.def(
        "loss_hessian_vector",
        [](DataLoss& loss, const Array<double>& w, const Array<double>& v, const Changed<double>& out) {
            check_size("w", w.size(), loss.n_weights);
            check_size("v", v.size(), loss.n_weights);
            check_size("out", out.size(), loss.n_weights);
            unlocked([&] { loss.hessian_vector(w.data(), v.data(), out.data()); });
        },
        "loss"_a, "w"_a, "v"_a, "out"_a.noconvert());
    m.def("refine_loss", &DataLoss::refine, nb::call_guard<LockRelease>(), "loss"_a);
}

}  // namespace

void bind_losses(nb::module_& m) {
    nb::class_<DataLoss>(m, "DataLoss")
        .def_ro("n_weights", &DataLoss::n_weights)
        .def_ro("n_sequences", &DataLoss::n_sequences)
        .def_prop_ro("shard_ptr", &DataLoss::shard_ptr)
        .def("set_shard", &DataLoss::set_shard,
             "Before the first question: it is that of a shard, beside which others are evaluated.")
        .def(
            "takes_any_order",
            [](DataLoss& self) {
                auto* const sharded = dynamic_cast<ShardedLoss*>(&self);
                return !sharded || unlocked([&] { return sharded->takes_any_order(); });
            },
            "Whether sequences may be visited in any order: no shard is made anew for each.");
    bind_python_loss(m);
    nb::class_<PythonSlices>(m, "FunctionSlices")
        .def(nb::init<std::int64_t, nb::callable, nb::callable>(), "n_slices"_a, "slice"_a, "slice_of"_a);
    bind_kinds(m);
    m.def(
        "fix_weights",
        [](std::shared_ptr<DataLoss> loss, std::int64_t begin, const Array<double>& fixed) {
            return fix_weights(std::move(loss), begin, copy(view(fixed)));
        },
        "loss"_a, "begin"_a, "fixed"_a);
    nb::class_<Objective>(m, "Objective")
        .def(
            "__init__",
            [](Objective* self, std::shared_ptr<DataLoss> loss, const Array<double>& l2) {
                new (self) Objective(std::move(loss), copy(view(l2)));
            },
            "loss"_a, "l2"_a)
        .def_prop_ro("l2",
                     [](nb::handle self) {
                         const std::span<const double> l2 = nb::cast<const Objective&>(self).l2();
                         return nb::ndarray<nb::numpy, const double, nb::ndim<1>>(l2.data(), {l2.size()},
                                                                                  self);
                     })
        .def("refine", &Objective::refine, nb::call_guard<LockRelease>())
        .def(
            "value_and_gradient",
            [](Objective& self, const Array<double>& w) {
                check_size("w", w.size(), self.n_weights());
                double value = 0;
                nb::object gradient = filled<double>(
                    {w.size()}, [&](double* out) { value = self.value_and_gradient(w.data(), out); });
                return nb::make_tuple(value, gradient);
            },
            "w"_a)
        .def(
            "hessian_vector",
            [](Objective& self, const Array<double>& w, const Array<double>& v) {
                check_size("w", w.size(), self.n_weights());
                check_size("v", v.size(), self.n_weights());
                return filled<double>({w.size()},
                                      [&](double* out) { self.hessian_vector(w.data(), v.data(), out); });
            },
            "w"_a, "v"_a);
}

}  // namespace crfkit
