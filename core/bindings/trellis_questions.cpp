#include <nanobind/nanobind.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "bindings/bindings.hpp"
#include "bindings/path_questions.hpp"
#include "patterns/trellis_graph.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

// Sequence n of some trellises with scores: states [T, L] with start and end folded in, arcs [A] or
// [T − 1, A] in the order of the bigrams, weights of the patterns [W]. The trellises must outlive it.
class ScoredTrellisSequence : public EngineSums<ScoredTrellisSequence> {
  public:
    static constexpr const char* kOutput = "label sequence";

    ScoredTrellisSequence(const Trellises& trellises, std::int64_t n, Matrix<double> states,
                          const AnyArray<double>& arcs, const Array<double>& weights)
        : trellises_(trellises), states_(std::move(states)), trellis_{trellises.table,
                                                                      steps_of(trellises, n),
                                                                      trellises.layout->n_labels,
                                                                      states_.data(),
                                                                      arcs_,
                                                                      true} {
        const std::int64_t A = trellises.bigrams.n_arcs();
        const std::int64_t T = std::max<std::int64_t>(trellis_.n_positions(), 0);
        const bool by_position = arcs.ndim() == 2;
        if (static_cast<std::int64_t>(states_.shape(0)) != T ||
            static_cast<std::int64_t>(states_.shape(1)) != trellis_.n_labels)
            throw std::invalid_argument("the states must have the shape [T, L]");
        if (arcs.ndim() < 1 || arcs.ndim() > 2 ||
            static_cast<std::int64_t>(arcs.size()) !=
                (by_position ? std::max<std::int64_t>(T - 1, 0) : 1) * A)
            throw std::invalid_argument("the arcs must have the shape [A] or [T − 1, A]");
        check_size("weights", weights.size(), trellises.matcher->n_weights);
        const LockRelease release;
        std::vector<double> active;
        trellises.table.score_active(weights.data(), active);
        if (by_position)
            arcs_.score_each(trellises.table, trellis_.steps, arcs.data(), A, active);
        else
            arcs_.score_all(trellises.table, arcs.data(), active);
        arcs_.exponentiate(trellises.table);
        graph_.emplace(trellis_, places_);
    }
    ScoredTrellisSequence(const ScoredTrellisSequence&) = delete;

    const TrellisGraph& graph() const { return *graph_; }
    bool empty() const { return trellis_.steps.empty(); }
    // Numbers of all parts: states [T, L], arcs [T − 1, A], weights [W].
    Shapes shapes() const {
        const std::size_t T = states_.shape(0);
        return {{T, states_.shape(1)},
                {T > 0 ? T - 1 : 0, static_cast<std::size_t>(trellises_.bigrams.n_arcs())},
                {static_cast<std::size_t>(trellises_.matcher->n_weights)}};
    }
    bool fits(const ScoredTrellisSequence& direction) const {
        return direction.trellis_.steps.data() == trellis_.steps.data();
    }
    void collect(const std::vector<double>& of_nodes, const std::vector<double>& of_arcs,
                 const PartNumbers& parts) const {
        const std::int64_t T = trellis_.n_positions(), A = trellises_.bigrams.n_arcs();
        std::vector<double> active(static_cast<std::size_t>(trellises_.table.n_active()), 0.0);
        std::fill_n(parts[0], T * trellis_.n_labels, 0.0);
        std::fill_n(parts[1], (T - 1) * A, 0.0);
        std::fill_n(parts[2], trellises_.matcher->n_weights, 0.0);
        graph_->collect(of_nodes, of_arcs, A, parts[0], parts[1], active);
        trellises_.table.add_active(active, parts[2]);
    }

  private:
    static std::span<const std::int32_t> steps_of(const Trellises& trellises, std::int64_t n) {
        if (n < 0 || n >= trellises.n_sequences()) throw nb::index_error("there is no such sequence");
        return trellises.steps_of_sequence(n);
    }

    const Trellises& trellises_;
    Matrix<double> states_;
    StepScores arcs_;
    ScoredTrellis trellis_;
    TrellisPlaces places_;
    std::optional<TrellisGraph> graph_;
};

}  // namespace

void bind_trellis_questions(nb::module_& m) {
    nb::class_<ScoredTrellisSequence> scored(m, "ScoredTrellis");
    scored.def(nb::init<const Trellises&, std::int64_t, Matrix<double>, const AnyArray<double>&,
                        const Array<double>&>(),
               "trellises"_a, "sequence"_a, "states"_a, "arcs"_a, "weights"_a, nb::keep_alive<1, 2>());
    bind_path_questions(scored);
}

}  // namespace crfkit
