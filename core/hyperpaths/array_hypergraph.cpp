#include "hyperpaths/array_hypergraph.hpp"

#include <stdexcept>
#include <string>

namespace crfkit {

void ArrayHypergraph::check() const {
    if (n_nodes() < 1) throw std::invalid_argument("a hypergraph has at least one node, the goal");
    for (std::int64_t node = 0; node < n_nodes(); ++node) {
        const Edges edges = into(node);
        if (edges.n < 0) throw std::invalid_argument("the offsets of edges decrease");
        for (std::int64_t k = 0; k < edges.n; ++k) {
            const std::int64_t left = edges.left(k), right = edges.right(k);
            if (left < kNoTail || left >= node || right < kNoTail || right >= node)
                throw std::invalid_argument("edge " + std::to_string(edges.first + k) + " leads from nodes " +
                                            std::to_string(left) + " and " + std::to_string(right) +
                                            " to node " + std::to_string(node) +
                                            ", expected tails below the head, or −1");
        }
    }
}

}  // namespace crfkit
