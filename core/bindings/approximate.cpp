// Approximate inference on factor graphs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/threads.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "graphs/belief_propagation.hpp"

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
    out["log_partition"] = beliefs.log_partition;
    out["of_variables"] = new_array(std::move(beliefs.of_variables));
    out["of_tables"] = new_array(std::move(beliefs.of_tables));
    out["best"] = new_array(std::move(beliefs.best));
    return out;
}

}  // namespace

void bind_approximate(nb::module_& m) {
    nb::class_<BeliefPropagation>(m, "BeliefPropagation")
        .def(nb::init<const FactorGraph&, bool>(), "graph"_a, "tree_reweighted"_a = false)
        .def_prop_ro("is_exact", &BeliefPropagation::is_exact)
        .def(
            "run",
            [](const BeliefPropagation& self, const Array<double>& scores, const Maybe<bool>& allowed,
               const std::string& schedule, bool maximise, double damping, double tolerance,
               std::int64_t max_iterations, int n_threads) {
                check_input(self.plan().graph, scores, allowed);
                const MessageOptions options{schedule_of(schedule), maximise, damping, tolerance,
                                             max_iterations,        n_threads};
                Beliefs beliefs = unlocked([&] { return self.run(view(scores), view(allowed), options); });
                return as_dict(beliefs);
            },
            "scores"_a, "allowed"_a.none(), "schedule"_a, "maximise"_a, "damping"_a, "tolerance"_a,
            "max_iterations"_a, "n_threads"_a = 1);
}

}  // namespace crfkit
