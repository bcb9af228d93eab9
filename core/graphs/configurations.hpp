// The configurations of a table, one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "graphs/factor_graph.hpp"

namespace crfkit {

// Calls visit(place) for the places of table f among the scores, in order; `at` [arity or more] holds the
// values of the variables of its scope meanwhile.
template <class Visit>
void each_configuration(const FactorGraph& graph, std::int64_t f, std::vector<std::int32_t>& at,
                        const Visit& visit) {
    const auto scope = graph.scope(f);
    std::fill_n(at.begin(), scope.size(), 0);
    for (std::int64_t place = graph.table_ptr[f]; place < graph.table_ptr[f + 1]; ++place) {
        visit(place);
        for (std::size_t k = scope.size(); k-- > 0;) {
            if (++at[k] < graph.cardinalities[scope[k]]) break;
            at[k] = 0;
        }
    }
}

// The most variables of a table.
inline std::size_t largest_arity(const FactorGraph& graph) {
    std::size_t arity = 1;
    for (std::int64_t f = 0; f < graph.n_tables(); ++f) arity = std::max(arity, graph.scope(f).size());
    return arity;
}

}  // namespace crfkit
