// Sub-graphs without cycles that together hold every table of a factor graph.
#pragma once

#include <cstdint>
#include <vector>

#include "graphs/factor_graph.hpp"

namespace crfkit {

struct SpanningForests {
    // At least `n_least` forests, each a list of tables over two or more variables to which no further one
    // can be added without a cycle. Tables that are in few forests so far come first.
    SpanningForests(const FactorGraph& graph, std::int64_t n_least);

    std::vector<std::vector<std::int64_t>> forests;
    std::vector<double>
        appearance;  // [F] the share of the forests that hold a table; 1 for those over fewer variables
};

}  // namespace crfkit
