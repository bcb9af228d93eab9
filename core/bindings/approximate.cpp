// Approximate inference on factor graphs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/threads.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "graphs/assignment_search.hpp"
#include "graphs/belief_propagation.hpp"
#include "graphs/gibbs.hpp"
#include "graphs/map_dual.hpp"
#include "graphs/mean_field.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {

namespace {

Schedule schedule_of(const std::string& name) {
    if (name == "residual") return Schedule::kResidual;
    if (name == "sequential") return Schedule::kSequential;
    if (name == "synchronous") return Schedule::kSynchronous;
    throw std::invalid_argument("an unknown schedule");
}

// Throws std::invalid_argument unless scores and allowed values have the sizes of the graph.
void check_input(const FactorGraph& graph, const Array<double>& scores, const Maybe<bool>& allowed) {
    graph.check_scores(view(scores));
    if (allowed) check_size("allowed", allowed->size(), graph.value_ptr.back());
}

nb::dict as_dict(Beliefs& beliefs) {
    nb::dict out;
    out["possible"] = beliefs.possible;
    out["converged"] = beliefs.converged;
    out["residual"] = beliefs.residual;
    out["iterations"] = beliefs.iterations;
    out["logarithms"] = beliefs.logarithms;
    out["damping"] = beliefs.damping;
    out["n_averaged"] = beliefs.n_averaged;
    out["log_partition"] = beliefs.log_partition;
    out["of_variables"] = new_array(std::move(beliefs.of_variables));
    out["of_tables"] = new_array(std::move(beliefs.of_tables));
    out["best"] = new_array(std::move(beliefs.best));
    return out;
}

nb::dict as_dict(MeanFieldResult& field) {
    nb::dict out;
    out["possible"] = field.possible;
    out["converged"] = field.converged;
    out["residual"] = field.residual;
    out["iterations"] = field.iterations;
    out["lower_bound"] = field.lower_bound;
    out["bounds"] = new_array(std::move(field.bounds));
    out["of_variables"] = new_array(std::move(field.of_variables));
    out["of_tables"] = new_array(std::move(field.of_tables));
    return out;
}

nb::dict as_dict(GibbsSamples& drawn) {
    nb::dict out;
    out["possible"] = drawn.possible;
    out["n_blocks"] = drawn.n_blocks;
    out["chain_ptr"] = new_array(std::move(drawn.chain_ptr));
    out["samples"] = new_array(std::move(drawn.samples));
    out["scores"] = new_array(std::move(drawn.scores));
    out["of_variables"] = new_array(std::move(drawn.of_variables));
    out["of_tables"] = new_array(std::move(drawn.of_tables));
    return out;
}

nb::dict as_dict(MapSolution& solution) {
    nb::dict out;
    out["possible"] = solution.possible;
    out["optimal"] = solution.optimal;
    out["converged"] = solution.converged;
    out["score"] = solution.score;
    out["bound"] = solution.bound;
    out["scale"] = solution.scale;
    out["iterations"] = solution.iterations;
    out["bounds"] = new_array(std::move(solution.bounds));
    out["best"] = new_array(std::move(solution.best));
    return out;
}

// What answer() gives, as a dict; None where the search for a possible assignment was given up.
template <class Answer>
nb::object answered(const Answer& answer) {
    try {
        auto result = unlocked(answer);
        return as_dict(result);
    } catch (const SearchSpent&) {
        return nb::none();
    }
}

void bind_other_methods(nb::module_& m) {
    m.def(
        "mean_field",
        [](const FactorGraph& graph, const Array<double>& scores, const Maybe<bool>& allowed,
           double tolerance, std::int64_t max_iterations) {
            check_input(graph, scores, allowed);
            return answered([&] {
                return mean_field(MessagePlan(graph), view(scores), view(allowed), tolerance, max_iterations);
            });
        },
        "graph"_a, "scores"_a, "allowed"_a.none(), "tolerance"_a, "max_iterations"_a);
    m.def(
        "gibbs",
        [](const FactorGraph& graph, const Array<double>& scores, const Maybe<bool>& allowed, std::int64_t n,
           std::int64_t burn_in, std::int64_t thin, std::int64_t n_chains, std::uint64_t seed, bool blocked,
           int n_threads) {
            check_input(graph, scores, allowed);
            const GibbsOptions options{n, burn_in, thin, n_chains, seed, blocked, n_threads};
            return answered([&] { return gibbs(MessagePlan(graph), view(scores), view(allowed), options); });
        },
        "graph"_a, "scores"_a, "allowed"_a.none(), "n"_a, "burn_in"_a, "thin"_a, "n_chains"_a, "seed"_a,
        "blocked"_a, "n_threads"_a);
    m.def(
        "solve_map",
        [](const FactorGraph& graph, const Array<double>& scores, const Maybe<bool>& allowed,
           std::int64_t max_iterations, double tolerance, double cluster_size) {
            check_input(graph, scores, allowed);
            return answered([&] {
                return solve_map(MessagePlan(graph), view(scores), view(allowed),
                                 {max_iterations, tolerance, cluster_size});
            });
        },
        "graph"_a, "scores"_a, "allowed"_a.none(), "max_iterations"_a, "tolerance"_a, "cluster_size"_a);
}

}  // namespace

void bind_approximate(nb::module_& m) {
    bind_other_methods(m);
    nb::class_<BeliefPropagation>(m, "BeliefPropagation")
        .def(nb::init<const FactorGraph&, bool>(), "graph"_a, "tree_reweighted"_a = false)
        .def_prop_ro("is_exact", &BeliefPropagation::is_exact)
        .def(
            "run",
            [](const BeliefPropagation& self, const Array<double>& scores, const Maybe<bool>& allowed,
               const std::string& schedule, bool maximise, std::optional<double> damping, double tolerance,
               std::int64_t max_iterations, int n_threads) {
                check_input(self.plan().graph, scores, allowed);
                const MessageOptions options{schedule_of(schedule), maximise, damping, tolerance,
                                             max_iterations,        n_threads};
                Beliefs beliefs = unlocked([&] { return self.run(view(scores), view(allowed), options); });
                return as_dict(beliefs);
            },
            "scores"_a, "allowed"_a.none(), "schedule"_a, "maximise"_a, "damping"_a.none(), "tolerance"_a,
            "max_iterations"_a, "n_threads"_a = 1);
}

}  // namespace crfkit
