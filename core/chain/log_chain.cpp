#include "chain/log_chain.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "paths/engine.hpp"

namespace crfkit {
namespace {

// Numbers of the nodes of a chain as [T, L], without START and END.
void copy_nodes(const std::vector<double>& nodes, double* states) {
    std::copy(nodes.begin() + 1, nodes.end() - 1, states);
}

// Writes the numbers of arcs as [T − 1, L, L] unless that is null; those from START and into END are left
// out.
auto write_arcs(const ChainView& chain, double* arcs) {
    const std::int64_t T = chain.n_positions, L = chain.n_labels;
    return [=](const ChainGraph::Level& level, std::int64_t j, const ChainGraph::Arcs&, std::int64_t a,
               double number) {
        if (arcs && level.t > 0 && level.t < T) arcs[((level.t - 1) * L + a) * L + j - level.first] = number;
    };
}

}  // namespace

void require_possible(double log_partition) {
    if (!(log_partition > kAbsent))
        throw std::invalid_argument("no label sequence is possible: every one has a part with score −inf");
}

double log_partition(const ChainView& chain) { return PathEngine().log_partition(ChainGraph(chain)); }

double log_marginals(const ChainView& chain, double* states, double* arcs) {
    PathEngine engine;
    const double log_z = engine.marginals(ChainGraph(chain), true, write_arcs(chain, arcs));
    if (log_z > kAbsent) copy_nodes(engine.node_probs, states);
    return log_z;
}

void log_hessian_vector(const ChainView& chain, const ChainView& direction, double* states, double* arcs) {
    PathEngine engine;
    const ChainGraph graph(chain);
    require_possible(engine.marginals(graph));
    engine.hessian_vector(graph, ChainGraph(direction), write_arcs(chain, arcs));
    copy_nodes(engine.node_changes, states);
}

}  // namespace crfkit
