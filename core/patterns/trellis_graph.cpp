#include "patterns/trellis_graph.hpp"

namespace crfkit {

TrellisGraph::TrellisGraph(const ScoredTrellis& trellis, TrellisPlaces& places)
    : trellis_(trellis), places_(places) {
    places.node_begin.assign(1, 0);
    places.arc_begin.assign(1, 0);
    for (const std::int32_t number : trellis.steps) {
        const Step& step = trellis.table.steps[number];
        places.node_begin.push_back(places.node_begin.back() + step.n_sources());
        places.arc_begin.push_back(places.arc_begin.back() + step.n_arcs);
    }
}

void TrellisGraph::collect(const std::vector<double>& of_nodes, const std::vector<double>& of_arcs,
                           std::int64_t n_arcs, double* states, double* arcs,
                           std::vector<double>& active) const {
    const StepTable& table = trellis_.table;
    for (std::int64_t t = 0; t < n_levels(); ++t) {
        const Step& step = trellis_.step(t);
        if (t + 1 < n_levels()) {
            const double* nodes = of_nodes.data() + places_.node_begin[t] + step.n_sources();
            for (const std::int32_t label : table.labels(step.after))
                states[t * trellis_.n_labels + label] += *nodes++;
        }
        for (std::int64_t e = 0; e < step.n_arcs; ++e) {
            const std::int32_t arc = table.arc[step.first_arc + e], set = table.active[step.first_arc + e];
            if (arc >= 0) arcs[(t - 1) * n_arcs + arc] += of_arcs[places_.arc_begin[t] + e];
            if (set >= 0) active[set] += of_arcs[places_.arc_begin[t] + e];
        }
    }
}

}  // namespace crfkit
