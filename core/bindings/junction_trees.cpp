#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "graphs/junction_tree.hpp"
#include "graphs/junction_tree_max.hpp"
#include "graphs/junction_tree_sums.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

// A plan with the graph that it was made for.
class PlannedGraph {
  public:
    PlannedGraph(const FactorGraph& graph, const Maybe<std::uint8_t>& allowed, const Maybe<double>& scores,
                 double most_bytes)
        : graph_(graph) {
        if (allowed) check_size("allowed", allowed->size(), graph.value_ptr.back());
        if (scores) graph.check_scores(view(scores));
        const LockRelease release;
        tree_ = std::make_unique<JunctionTree>(graph_, view(allowed), view(scores), most_bytes);
    }

    const JunctionTree& tree() const { return *tree_; }

    double log_partition(const Array<double>& scores) const {
        check(scores);
        return unlocked([&] { return JunctionTreeSums(*tree_).log_partition(view(scores)); });
    }

    // log Z, the probabilities of values [Σ cardinalities] and of the entries of tables [n_scores].
    nb::tuple marginals(const Array<double>& scores) const {
        check(scores);
        NewArray<double> values({static_cast<std::size_t>(tree_->value_count)}), entries({scores.size()});
        const double log_z = unlocked(
            [&] { return JunctionTreeSums(*tree_).marginals(view(scores), values.data(), entries.data()); });
        return nb::make_tuple(log_z, values.take(), entries.take());
    }

    nb::tuple hessian_vector(const Array<double>& scores, const Array<double>& direction) const {
        check(scores);
        check_size("direction", direction.size(), graph_.n_scores());
        NewArray<double> values({static_cast<std::size_t>(tree_->value_count)}), entries({scores.size()});
        const double log_z = unlocked([&] {
            return JunctionTreeSums(*tree_).hessian_vector(view(scores), view(direction), values.data(),
                                                           entries.data());
        });
        return nb::make_tuple(log_z, values.take(), entries.take());
    }

    // log Z and the entropy.
    nb::tuple entropy(const Array<double>& scores) const {
        check(scores);
        double entropy = 0;
        const double log_z =
            unlocked([&] { return JunctionTreeSums(*tree_).entropy(view(scores), &entropy); });
        return nb::make_tuple(log_z, entropy);
    }

    double bytes_of_k_best(std::int64_t k) const {
        return tree_->bytes() + crfkit::bytes_of_k_best(*tree_, k);
    }

    // [(score, values [V]), …]
    nb::list k_best(const Array<double>& scores, std::int64_t k) const {
        check(scores);
        std::vector<ScoredAssignment> found =
            unlocked([&] { return k_best_assignments(graph_, *tree_, view(scores), k); });
        nb::list out;
        for (ScoredAssignment& one : found)
            out.append(nb::make_tuple(one.score, new_array(std::move(one.values))));
        return out;
    }

    // log Z and assignments [n · V], from uniforms [n · n_free].
    nb::tuple sample(const Array<double>& scores, std::int64_t n, const Array<double>& uniforms) const {
        check(scores);
        check_size("uniforms", uniforms.size(), n * tree_->conditioned.n_free());
        NewArray<std::int32_t> out(
            {static_cast<std::size_t>(n), static_cast<std::size_t>(graph_.n_variables())});
        const double log_z = unlocked(
            [&] { return JunctionTreeSums(*tree_).sample(view(scores), n, uniforms.data(), out.data()); });
        return nb::make_tuple(log_z, out.take());
    }

    // The scopes of the cliques, as variables of the graph.
    nb::list cliques() const {
        nb::list out;
        for (const Clique& clique : tree_->cliques)
            if (clique.n_summed_variables > 0) out.append(named(clique.scope));
        return out;
    }

    nb::object largest_clique() const { return named(tree_->order.largest_clique); }

  private:
    void check(const Array<double>& scores) const {
        if (!tree_->complete()) throw std::logic_error("the plan is too large");
        graph_.check_scores(view(scores));
    }
    nb::object named(const std::vector<std::int32_t>& free) const {
        std::vector<std::int32_t> variables;
        for (const std::int32_t v : free) variables.push_back(tree_->conditioned.variable[v]);
        return new_array(std::move(variables));
    }

    FactorGraph graph_;
    std::unique_ptr<JunctionTree> tree_;
};

}  // namespace

void bind_junction_trees(nb::module_& m) {
    nb::class_<PlannedGraph>(m, "JunctionTree")
        .def(nb::init<const FactorGraph&, const Maybe<std::uint8_t>&, const Maybe<double>&, double>(),
             "graph"_a, "allowed"_a.none(), "scores"_a.none(), "most_bytes"_a)
        .def_prop_ro("complete", [](const PlannedGraph& self) { return self.tree().complete(); })
        .def_prop_ro("n_free", [](const PlannedGraph& self) { return self.tree().conditioned.n_free(); })
        .def_prop_ro("bytes", [](const PlannedGraph& self) { return self.tree().bytes(); })
        .def_prop_ro("bytes_of_log_partition",
                     [](const PlannedGraph& self) { return self.tree().bytes_of_log_partition(); })
        .def_prop_ro("bytes_of_hessian_vector",
                     [](const PlannedGraph& self) { return self.tree().bytes_of_hessian_vector(); })
        .def("bytes_of_k_best", &PlannedGraph::bytes_of_k_best, "k"_a)
        .def_prop_ro("operations", [](const PlannedGraph& self) { return self.tree().operations(); })
        .def_prop_ro("cliques", &PlannedGraph::cliques)
        .def_prop_ro("largest_clique", &PlannedGraph::largest_clique)
        .def_prop_ro("largest_entries", [](const PlannedGraph& self) { return self.tree().order.largest; })
        .def("log_partition", &PlannedGraph::log_partition, "scores"_a)
        .def("marginals", &PlannedGraph::marginals, "scores"_a)
        .def("hessian_vector", &PlannedGraph::hessian_vector, "scores"_a, "direction"_a)
        .def("entropy", &PlannedGraph::entropy, "scores"_a)
        .def("k_best", &PlannedGraph::k_best, "scores"_a, "k"_a)
        .def("sample", &PlannedGraph::sample, "scores"_a, "n"_a, "uniforms"_a);
}

}  // namespace crfkit
