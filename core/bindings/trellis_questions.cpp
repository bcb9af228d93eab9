#include <nanobind/nanobind.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "bindings/answers.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "paths/label_sequences.hpp"
#include "patterns/trellis_graph.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

using States = Matrix<double>;
using Arcs = AnyArray<double>;
using Weights = Array<double>;

// Scores as Python hands them over: states [T, L], arcs [A] or [T − 1, A], weights of patterns [W].
struct Scores {
    Scores(const Trellises& trellises, std::int64_t n, const States& states, const Arcs& given_arcs,
           const Weights& weights)
        : steps(steps_of(trellises, n)),
          trellis{trellises.table, steps, trellises.layout->n_labels, states.data(), arcs} {
        const std::int64_t A = trellises.bigrams.n_arcs();
        const bool by_position = given_arcs.ndim() == 2;
        const std::int64_t n_pairs = std::max<std::int64_t>(trellis.n_positions() - 1, 0);
        if (static_cast<std::int64_t>(states.shape(0)) != std::max<std::int64_t>(trellis.n_positions(), 0) ||
            static_cast<std::int64_t>(states.shape(1)) != trellis.n_labels)
            throw std::invalid_argument("the states must have the shape [T, L]");
        if (given_arcs.ndim() < 1 || given_arcs.ndim() > 2 ||
            static_cast<std::int64_t>(given_arcs.size()) != (by_position ? n_pairs : 1) * A)
            throw std::invalid_argument("the arcs must have the shape [A] or [T − 1, A]");
        if (static_cast<std::int64_t>(weights.size()) != trellises.matcher->n_weights)
            throw std::invalid_argument("there must be one score for each weight of the patterns");
        const LockRelease release;
        std::vector<double> active;
        trellises.table.score_active(weights.data(), active);
        if (by_position)
            arcs.score_each(trellises.table, steps, given_arcs.data(), A, active);
        else
            arcs.score_all(trellises.table, given_arcs.data(), active);
        arcs.exponentiate(trellises.table);
    }
    Scores(const Scores&) = delete;
    bool empty() const { return steps.empty(); }
    TrellisGraph graph() const { return TrellisGraph(trellis, places); }

    static std::span<const std::int32_t> steps_of(const Trellises& trellises, std::int64_t n) {
        if (n < 0 || n >= trellises.n_sequences()) throw nb::index_error("there is no such sequence");
        return trellises.steps_of_sequence(n);
    }

    std::span<const std::int32_t> steps;
    StepScores arcs;
    ScoredTrellis trellis;
    mutable TrellisPlaces places;
};

// Numbers of all parts: states [T, L], arcs [T − 1, A], weights [W].
class Parts {
  public:
    Parts(const Trellises& trellises, const Scores& scores)
        : table_(trellises.table),
          n_arcs_(trellises.bigrams.n_arcs()),
          n_positions_(scores.empty() ? 0 : static_cast<std::size_t>(scores.trellis.n_positions())),
          states_({n_positions_, static_cast<std::size_t>(trellises.layout->n_labels)}),
          arcs_({n_positions_ > 0 ? n_positions_ - 1 : 0, static_cast<std::size_t>(n_arcs_)}),
          weights_({static_cast<std::size_t>(trellises.matcher->n_weights)}),
          active_(static_cast<std::size_t>(trellises.table.n_active()), 0.0) {
        std::fill_n(states_.data(), n_positions_ * static_cast<std::size_t>(trellises.layout->n_labels), 0.0);
        std::fill_n(arcs_.data(),
                    (n_positions_ > 0 ? n_positions_ - 1 : 0) * static_cast<std::size_t>(n_arcs_), 0.0);
        std::fill_n(weights_.data(), trellises.matcher->n_weights, 0.0);
    }
    void collect(const TrellisGraph& graph, const std::vector<double>& of_nodes,
                 const std::vector<double>& of_arcs) {
        graph.collect(of_nodes, of_arcs, n_arcs_, states_.data(), arcs_.data(), active_);
        table_.add_active(active_, weights_.data());
    }
    nb::tuple take() { return nb::make_tuple(states_.take(), arcs_.take(), weights_.take()); }

  private:
    const StepTable& table_;
    const std::int64_t n_arcs_;
    const std::size_t n_positions_;
    NewArray<double> states_, arcs_, weights_;
    std::vector<double> active_;
};

void check_possible(double log_partition) {
    if (log_partition == -std::numeric_limits<double>::infinity())
        throw std::invalid_argument("no label sequence is possible: every one has a part with score −inf");
}

double log_partition(const Trellises& trellises, std::int64_t n, const States& states, const Arcs& arcs,
                     const Weights& weights, bool in_log_space) {
    const Scores scores(trellises, n, states, arcs, weights);
    const LockRelease release;
    return scores.empty() ? 0.0 : PathEngine().log_partition(scores.graph(), in_log_space);
}

nb::tuple marginals(const Trellises& trellises, std::int64_t n, const States& states, const Arcs& arcs,
                    const Weights& weights, bool in_log_space) {
    const Scores scores(trellises, n, states, arcs, weights);
    Parts parts(trellises, scores);
    if (!scores.empty()) {
        const LockRelease release;
        const TrellisGraph graph = scores.graph();
        PathEngine engine;
        check_possible(engine.marginals(graph, in_log_space));
        parts.collect(graph, engine.node_probs, engine.arc_probs);
    }
    return parts.take();
}

nb::tuple hessian_vector(const Trellises& trellises, std::int64_t n, const States& states, const Arcs& arcs,
                         const Weights& weights, const States& d_states, const Arcs& d_arcs,
                         const Weights& d_weights, bool in_log_space) {
    const Scores scores(trellises, n, states, arcs, weights);
    const Scores direction(trellises, n, d_states, d_arcs, d_weights);
    Parts parts(trellises, scores);
    if (!scores.empty()) {
        const LockRelease release;
        const TrellisGraph graph = scores.graph();
        PathEngine engine;
        check_possible(engine.marginals(graph, in_log_space));
        engine.hessian_vector(graph, direction.graph());
        parts.collect(graph, engine.node_changes, engine.arc_changes);
    }
    return parts.take();
}

nb::list best_label_sequences(const Trellises& trellises, std::int64_t n, const States& states,
                              const Arcs& arcs, const Weights& weights, std::int64_t k) {
    const Scores scores(trellises, n, states, arcs, weights);
    std::vector<ScoredLabels> found;
    {
        const LockRelease release;
        if (scores.empty() && k > 0)
            found.push_back({0, {}});
        else if (!scores.empty())
            found = k_best(scores.graph(), k);
    }
    return label_sequences(found);
}

// (score, labels [T]); the score is −inf when nothing is possible.
nb::tuple best_label_sequence(const Trellises& trellises, std::int64_t n, const States& states,
                              const Arcs& arcs, const Weights& weights) {
    const Scores scores(trellises, n, states, arcs, weights);
    NewArray<std::int32_t> labels({states.shape(0)});
    std::fill_n(labels.data(), states.shape(0), 0);
    double score = 0;
    if (!scores.empty()) {
        const LockRelease release;
        std::vector<double> best;
        score = decode(scores.graph(), best, labels.data());
    }
    return nb::make_tuple(score, labels.take());
}

nb::object draw_samples(const Trellises& trellises, std::int64_t n, const States& states, const Arcs& arcs,
                        const Weights& weights, const Matrix<double>& uniforms) {
    const Scores scores(trellises, n, states, arcs, weights);
    if (uniforms.shape(1) != states.shape(0))
        throw std::invalid_argument("there must be one uniform number a position");
    NewArray<std::int32_t> out({uniforms.shape(0), uniforms.shape(1)});
    if (!scores.empty()) {
        const LockRelease release;
        const TrellisGraph graph = scores.graph();
        PathEngine engine;
        check_possible(engine.log_partition(graph));
        sample(graph, engine, static_cast<std::int64_t>(uniforms.shape(0)), uniforms.data(), out.data());
    }
    return out.take();
}

double find_entropy(const Trellises& trellises, std::int64_t n, const States& states, const Arcs& arcs,
                    const Weights& weights) {
    const Scores scores(trellises, n, states, arcs, weights);
    const LockRelease release;
    if (scores.empty()) return 0.0;
    const TrellisGraph graph = scores.graph();
    PathEngine engine;
    check_possible(engine.marginals(graph));
    return engine.entropy(graph);
}

}  // namespace

// Questions on sequence n of some trellises at given scores: states [T, L] with start and end folded in, arcs
// [A] or [T − 1, A] in the order of the bigrams, weights of the patterns [W].
void bind_trellis_questions(nb::module_& m) {
    m.def("trellis_log_partition", &log_partition, "trellises"_a, "sequence"_a, "states"_a, "arcs"_a,
          "weights"_a, "in_log_space"_a = false);
    m.def("trellis_marginals", &marginals, "trellises"_a, "sequence"_a, "states"_a, "arcs"_a, "weights"_a,
          "in_log_space"_a = false);
    m.def("trellis_hessian_vector", &hessian_vector, "trellises"_a, "sequence"_a, "states"_a, "arcs"_a,
          "weights"_a, "d_states"_a, "d_arcs"_a, "d_weights"_a, "in_log_space"_a = false);
    m.def("trellis_best", &best_label_sequence, "trellises"_a, "sequence"_a, "states"_a, "arcs"_a,
          "weights"_a);
    m.def("trellis_k_best", &best_label_sequences, "trellises"_a, "sequence"_a, "states"_a, "arcs"_a,
          "weights"_a, "k"_a);
    m.def("trellis_sample", &draw_samples, "trellises"_a, "sequence"_a, "states"_a, "arcs"_a, "weights"_a,
          "uniforms"_a);
    m.def("trellis_entropy", &find_entropy, "trellises"_a, "sequence"_a, "states"_a, "arcs"_a, "weights"_a);
}

}  // namespace crfkit
