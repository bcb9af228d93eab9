#include "lattice/lattice_loss.hpp"

#include <cmath>
#include <limits>

#include "lattice/graph.hpp"

namespace crfkit {
namespace {

// Adds weight · P (or its change) to the residuals. Returns log Z, NaN when nothing is possible.
template <class Real>
double add_marginals(const Lattice& lattice, PathEngine& engine, const ArcScores& arcs,
                     const std::vector<double>& scores, const LatticeDirection* direction, double weight,
                     const LatticeResiduals<Real>& residuals) {
    const LatticeGraph graph(lattice, arcs, scores);
    const double log_partition = engine.marginals(graph);
    if (!std::isfinite(log_partition)) return std::numeric_limits<double>::quiet_NaN();
    if (direction) engine.hessian_vector(graph, LatticeGraph(lattice, direction->arcs, direction->nodes));
    const std::vector<double>& of_nodes = direction ? engine.node_changes : engine.node_probs;
    const std::vector<double>& of_arcs = direction ? engine.arc_changes : engine.arc_probs;
    for (std::size_t i = 0; i < lattice.labels.size(); ++i)
        residuals.nodes[i] += static_cast<Real>(weight * of_nodes[i]);
    for (std::size_t e = 0; e < lattice.arc.size(); ++e)
        if (lattice.arc[e] >= 0) residuals.arcs[lattice.arc[e]] += weight * of_arcs[e];
    return log_partition;
}

// Score of the labels of a completely labelled sequence. They are taken off the residuals, unless these are
// changes: one output does not move.
template <class Real>
double take_off_gold(const Lattice& lattice, const ArcScores& arcs, const std::vector<double>& scores,
                     bool moving, const Annotation& gold, std::int64_t first_position, double weight,
                     const LatticeResiduals<Real>& residuals) {
    double score = 0;
    std::int64_t before = -1;
    for (std::int64_t t = 0; t < lattice.n_positions(); ++t) {
        const std::int64_t node = lattice.find_node(t, gold.labels[first_position + t]);
        score += scores[node];
        if (!moving) residuals.nodes[node] -= static_cast<Real>(weight);
        const std::int64_t e = t ? lattice.find_arc(before, node) : -1;
        before = node;
        if (e < 0 || lattice.arc[e] < 0) continue;
        score += arcs.scores[lattice.arc[e]];
        if (!moving) residuals.arcs[lattice.arc[e]] -= weight;
    }
    return score;
}

}  // namespace

template <class Real>
double lattice_loss(const Lattice& lattice, PathEngine& engine, const ArcScores& arcs,
                    std::vector<double>& scores, const LatticeDirection* direction, const Annotation& gold,
                    std::int64_t first_position, double weight, const LatticeResiduals<Real>& residuals) {
    const std::int64_t n_positions = lattice.n_positions();
    double loss = add_marginals(lattice, engine, arcs, scores, direction, weight, residuals);
    if (gold.complete(first_position, first_position + n_positions)) {
        loss -= take_off_gold(lattice, arcs, scores, direction != nullptr, gold, first_position, weight,
                              residuals);
    } else {
        lattice.close(gold, first_position, scores);
        loss -= add_marginals(lattice, engine, arcs, scores, direction, -weight, residuals);
    }
    return weight * loss;
}

template double lattice_loss(const Lattice&, PathEngine&, const ArcScores&, std::vector<double>&,
                             const LatticeDirection*, const Annotation&, std::int64_t, double,
                             const LatticeResiduals<float>&);
template double lattice_loss(const Lattice&, PathEngine&, const ArcScores&, std::vector<double>&,
                             const LatticeDirection*, const Annotation&, std::int64_t, double,
                             const LatticeResiduals<double>&);

}  // namespace crfkit
