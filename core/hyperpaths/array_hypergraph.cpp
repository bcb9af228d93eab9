#include "hyperpaths/array_hypergraph.hpp"

#include <stdexcept>
#include <string>

#include "kernels/hyperpath_rows.hpp"

namespace crfkit {

// Scores within ±177 have weights of exponent 0, as Wide::exp would give them: 256 log 2 = 177.4.
void ArrayHypergraph::weigh() {
    weights_.resize(scores_.size());
    exponents_.clear();
    if (hyperpath_kernels().weigh(scores_.data(), n_edges(), 177.0, weights_.data())) return;
    exponents_.resize(scores_.size());
    for (std::size_t e = 0; e < scores_.size(); ++e) {
        const Wide weight = Wide::exp(scores_[e]);
        weights_[e] = weight.mantissa;
        exponents_[e] = weight.exponent;
    }
}

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
