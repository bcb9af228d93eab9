#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bindings/answers.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "hyperpaths/array_hypergraph.hpp"
#include "hyperpaths/engine.hpp"
#include "hyperpaths/k_best.hpp"
#include "hyperpaths/viterbi.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

// A hypergraph with scores [E] of its edges, −inf for an edge that is absent. Outputs are lists of edges.
class ScoredHypergraph {
  public:
    ScoredHypergraph(const Array<std::int64_t>& edge_ptr, const Array<std::int64_t>& tails,
                     const Array<double>& scores) {
        check_size("tails", tails.size(), 2 * static_cast<std::int64_t>(scores.size()));
        if (edge_ptr.size() < 2 || edge_ptr.data()[0] != 0)
            throw std::invalid_argument("edge_ptr must begin with 0 and have an end for each node");
        graph_.clear();
        std::int64_t e = 0;
        for (const std::int64_t end : view(edge_ptr).subspan(1)) {
            if (end < e || end > static_cast<std::int64_t>(scores.size()))
                throw std::invalid_argument("edge_ptr must not decrease, nor exceed the number of edges");
            for (; e < end; ++e)
                graph_.add_edge(tails.data()[2 * e], tails.data()[2 * e + 1], scores.data()[e]);
            graph_.add_node();
        }
        check_size("scores", scores.size(), e);
        graph_.check();
        graph_.weigh();
    }

    double log_partition() const {
        const LockRelease release;
        return HyperpathEngine().log_partition(graph_);
    }
    nb::object marginals() const {
        return filled_edges([&](double* out) {
            HyperpathEngine engine;
            check_possible(engine.marginals(graph_, [&](std::int64_t e, double prob) { out[e] = prob; }));
        });
    }
    nb::object hessian_vector(const Array<double>& direction) const {
        check_size("direction", direction.size(), graph_.n_edges());
        return filled_edges([&](double* out) {
            HyperpathEngine engine;
            check_possible(engine.marginals(graph_, [](std::int64_t, double) {}));
            engine.hessian_vector(
                graph_, [&](std::int64_t e) { return direction.data()[e]; },
                [&](std::int64_t e, double change) { out[e] = change; });
        });
    }
    double entropy() const {
        const LockRelease release;
        HyperpathEngine engine;
        check_possible(engine.marginals(graph_, [](std::int64_t, double) {}));
        return engine.entropy(graph_);
    }
    nb::tuple decode() const {
        std::vector<std::int32_t> edges;
        const double score = unlocked([&] {
            ViterbiWorkspace workspace;
            return viterbi(graph_, workspace, [&](std::int64_t, std::int64_t e) {
                edges.push_back(static_cast<std::int32_t>(e));
            });
        });
        check_possible(score);
        return nb::make_tuple(score, new_array(edges));
    }
    nb::list k_best(std::int64_t k) const {
        std::vector<ScoredLabels> found;
        unlocked([&] {
            KBestHyperpaths paths(graph_);
            while (static_cast<std::int64_t>(found.size()) < k && paths.next()) {
                found.push_back({paths.score(), {}});
                paths.each([&](std::int64_t, std::int64_t e) {
                    found.back().labels.push_back(static_cast<std::int32_t>(e));
                });
            }
        });
        return as_list(found);
    }
    nb::object sample(const Array<double>& uniforms) const {
        std::vector<std::int32_t> edges;
        unlocked([&] {
            HyperpathEngine engine;
            std::size_t used = 0;
            check_possible(engine.log_partition(graph_));
            engine.sample(
                graph_,
                [&] {
                    if (used == uniforms.size())
                        throw std::invalid_argument("there must be a uniform number for each choice");
                    return uniforms.data()[used++];
                },
                [&](std::int64_t, std::int64_t e) { edges.push_back(static_cast<std::int32_t>(e)); });
        });
        return new_array(edges);
    }

  private:
    static void check_possible(double log_partition) {
        if (log_partition == -HUGE_VAL)
            throw std::invalid_argument("no hyperpath is possible: every one has an edge with score −inf");
    }
    // [E] zeros, of which fill(data) fills some.
    template <class Fill>
    nb::object filled_edges(const Fill& fill) const {
        const auto n_edges = static_cast<std::size_t>(graph_.n_edges());
        return filled<double>({n_edges}, [&](double* out) {
            std::fill_n(out, n_edges, 0.0);
            fill(out);
        });
    }

    ArrayHypergraph graph_;
};

}  // namespace

void bind_hyperpaths(nb::module_& m) {
    nb::class_<ScoredHypergraph>(m, "Hypergraph")
        .def(nb::init<const Array<std::int64_t>&, const Array<std::int64_t>&, const Array<double>&>(),
             "edge_ptr"_a, "tails"_a, "scores"_a)
        .def("log_partition", &ScoredHypergraph::log_partition)
        .def("marginals", &ScoredHypergraph::marginals)
        .def("hessian_vector", &ScoredHypergraph::hessian_vector, "direction"_a)
        .def("entropy", &ScoredHypergraph::entropy)
        .def("decode", &ScoredHypergraph::decode)
        .def("k_best", &ScoredHypergraph::k_best, "k"_a)
        .def("sample", &ScoredHypergraph::sample, "uniforms"_a);
}

}  // namespace crfkit
