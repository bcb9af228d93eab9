#include "graphs/factor_graph.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace crfkit {

FactorGraph::FactorGraph(std::span<const std::int32_t> counts, std::span<const std::int64_t> ptr,
                         std::span<const std::int32_t> variables)
    : cardinalities(counts.begin(), counts.end()),
      scope_ptr(ptr.begin(), ptr.end()),
      scopes(variables.begin(), variables.end()),
      table_ptr{0},
      value_ptr{0} {
    for (const std::int32_t count : cardinalities) {
        if (count < 1) throw std::invalid_argument("a variable without values");
        value_ptr.push_back(value_ptr.back() + count);
    }
    if (scope_ptr.empty() || scope_ptr.front() != 0 ||
        scope_ptr.back() != static_cast<std::int64_t>(scopes.size()))
        throw std::invalid_argument("scope_ptr does not span the scopes");
    std::vector<std::int64_t> last_table(cardinalities.size(), -1);  // that names a variable
    for (std::int64_t f = 0; f < n_tables(); ++f) {
        if (scope_ptr[f + 1] < scope_ptr[f]) throw std::invalid_argument("scope_ptr decreases");
        std::int64_t size = 1;
        for (const std::int32_t v : scope(f)) {
            if (v < 0 || v >= n_variables()) throw std::invalid_argument("a table of an unknown variable");
            if (last_table[v] == f) throw std::invalid_argument("a table that names a variable twice");
            last_table[v] = f;
            if (size > std::numeric_limits<std::int64_t>::max() / cardinalities[v])
                throw std::invalid_argument("a table with too many configurations");
            size *= cardinalities[v];
        }
        if (table_ptr.back() > std::numeric_limits<std::int64_t>::max() - size)
            throw std::invalid_argument("tables with too many configurations");
        table_ptr.push_back(table_ptr.back() + size);
    }
}

void FactorGraph::check_scores(std::span<const double> scores) const {
    if (static_cast<std::int64_t>(scores.size()) != n_scores())
        throw std::invalid_argument("scores have " + std::to_string(scores.size()) + " numbers, expected " +
                                    std::to_string(n_scores()));
    for (const double score : scores)
        if (std::isnan(score) || score == std::numeric_limits<double>::infinity())
            throw std::invalid_argument("scores hold NaN or +inf");
}

double FactorGraph::score(std::span<const double> scores, std::span<const std::int32_t> assignment) const {
    double sum = 0;
    for (std::int64_t f = 0; f < n_tables(); ++f) {
        std::int64_t place = 0;
        for (const std::int32_t v : scope(f)) place = place * cardinalities[v] + assignment[v];
        sum += scores[table_ptr[f] + place];
    }
    return sum;
}

}  // namespace crfkit
