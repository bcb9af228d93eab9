#include <nanobind/nanobind.h>

#include <cmath>
#include <stdexcept>

#include "bindings/answers.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "chain/log_chain.hpp"
#include "chain/scaled_chain.hpp"
#include "kernels/kernels.hpp"
#include "paths/label_sequences.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

// Scores as Python hands them over: states [T, L], arcs [L, L] or [T − 1, L, L]. By position when there are
// three axes.
ChainView make_view(const Matrix<double>& states, const AnyArray<double>& arcs) {
    const auto T = static_cast<std::int64_t>(states.shape(0));
    const auto L = static_cast<std::int64_t>(states.shape(1));
    const bool by_position = arcs.ndim() == 3;
    const std::int64_t n_tables = by_position ? (T > 0 ? T - 1 : 0) : 1;
    if (L < 1 || arcs.ndim() < 2 || arcs.ndim() > 3 ||
        static_cast<std::int64_t>(arcs.size()) != n_tables * L * L)
        throw std::invalid_argument("the arcs must have the shape [L, L] or [T − 1, L, L]");
    return {T, static_cast<std::int32_t>(L), states.data(), arcs.data(), by_position};
}

std::size_t pairs(const ChainView& chain) {
    return static_cast<std::size_t>(chain.n_positions > 1 ? chain.n_positions - 1 : 0);
}

double chain_log_partition(const Matrix<double>& states, const AnyArray<double>& arcs, bool in_log_space) {
    const ChainView chain = make_view(states, arcs);
    const LockRelease release;
    if (chain.n_positions == 0) return 0.0;
    return !in_log_space && scaled_is_exact(chain) ? scaled_log_partition(chain) : log_partition(chain);
}

nb::tuple marginals(const Matrix<double>& states, const AnyArray<double>& arcs, bool with_arcs,
                    bool in_log_space) {
    const ChainView chain = make_view(states, arcs);
    const auto L = static_cast<std::size_t>(chain.n_labels);
    NewArray<double> out({states.shape(0), L}), arcs_out({with_arcs ? pairs(chain) : 0, L, L});
    {
        const LockRelease release;
        double* arcs_data = with_arcs ? arcs_out.data() : nullptr;
        if (chain.n_positions > 0) {
            if (!in_log_space && scaled_is_exact(chain))
                scaled_marginals(chain, out.data(), arcs_data);
            else
                require_possible(log_marginals(chain, out.data(), arcs_data));
        }
    }
    return nb::make_tuple(out.take(), arcs_out.take());
}

nb::tuple hessian_vector(const Matrix<double>& states, const AnyArray<double>& arcs,
                         const Matrix<double>& d_states, const AnyArray<double>& d_arcs, bool in_log_space) {
    const ChainView chain = make_view(states, arcs), direction = make_view(d_states, d_arcs);
    if (direction.n_positions != chain.n_positions || direction.n_labels != chain.n_labels)
        throw std::invalid_argument("the direction must have the shape of the scores");
    const auto L = static_cast<std::size_t>(chain.n_labels);
    NewArray<double> out({states.shape(0), L}), arcs_out({pairs(chain), L, L});
    {
        const LockRelease release;
        if (chain.n_positions > 0) {
            if (!in_log_space && scaled_is_exact(chain))
                scaled_hessian_vector(chain, direction, out.data(), arcs_out.data());
            else
                log_hessian_vector(chain, direction, out.data(), arcs_out.data());
        }
    }
    return nb::make_tuple(out.take(), arcs_out.take());
}

nb::list best_label_sequences(const Matrix<double>& states, const AnyArray<double>& arcs, std::int64_t k) {
    const ChainView chain = make_view(states, arcs);
    std::vector<ScoredLabels> found;
    {
        const LockRelease release;
        found = k_best(ChainGraph(chain), k);
    }
    return label_sequences(found);
}

nb::object draw_samples(const Matrix<double>& states, const AnyArray<double>& arcs,
                        const Matrix<double>& uniforms) {
    const ChainView chain = make_view(states, arcs);
    if (uniforms.shape(1) != states.shape(0))
        throw std::invalid_argument("there must be one uniform number a position");
    NewArray<std::int32_t> out({uniforms.shape(0), uniforms.shape(1)});
    {
        const LockRelease release;
        const ChainGraph graph(chain);
        PathEngine engine;
        require_possible(engine.log_partition(graph));
        sample(graph, engine, static_cast<std::int64_t>(uniforms.shape(0)), uniforms.data(), out.data());
    }
    return out.take();
}

double chain_entropy(const Matrix<double>& states, const AnyArray<double>& arcs) {
    const ChainView chain = make_view(states, arcs);
    const LockRelease release;
    const ChainGraph graph(chain);
    PathEngine engine;
    require_possible(engine.marginals(graph));
    return engine.entropy(graph);
}

}  // namespace

// Start and end scores and allowed labels are already folded into the states. `in_log_space` forces the slow
// twin.
void bind_chain(nb::module_& m) {
    m.def("instruction_set", &instruction_set, "The instruction set of the kernels in use.");
    m.def("chain_log_partition", &chain_log_partition, "states"_a, "arcs"_a, "in_log_space"_a = false);
    m.def("chain_marginals", &marginals, "states"_a, "arcs"_a, "with_arcs"_a = true,
          "in_log_space"_a = false);
    m.def("chain_hessian_vector", &hessian_vector, "states"_a, "arcs"_a, "d_states"_a, "d_arcs"_a,
          "in_log_space"_a = false);
    m.def("chain_k_best", &best_label_sequences, "states"_a, "arcs"_a, "k"_a);
    m.def("chain_sample", &draw_samples, "states"_a, "arcs"_a, "uniforms"_a);
    m.def("chain_entropy", &chain_entropy, "states"_a, "arcs"_a);
}

}  // namespace crfkit
