// A factor graph by dense tables: p(y) = exp(Σ_f score_f(y_f)) / Z, where y_f are the values of the variables
// of table f, each in 0 … cardinality − 1.
//
// The scores of all tables stand in one array, in the log domain, −inf where a configuration is impossible.
// Within a table the last variable of the scope is the fastest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace crfkit {

// Variables and scopes, without scores.
class FactorGraph {
  public:
    // cardinalities [V]; the scope of table f is scopes[scope_ptr[f]] … scopes[scope_ptr[f + 1] − 1].
    // Throws std::invalid_argument unless every variable has values and every scope has distinct variables.
    FactorGraph(std::span<const std::int32_t> cardinalities, std::span<const std::int64_t> scope_ptr,
                std::span<const std::int32_t> scopes);

    std::int64_t n_variables() const { return static_cast<std::int64_t>(cardinalities.size()); }
    std::int64_t n_tables() const { return static_cast<std::int64_t>(scope_ptr.size()) - 1; }
    std::int64_t n_scores() const { return table_ptr.back(); }
    std::span<const std::int32_t> scope(std::int64_t table) const {
        return std::span(scopes).subspan(static_cast<std::size_t>(scope_ptr[table]),
                                         static_cast<std::size_t>(scope_ptr[table + 1] - scope_ptr[table]));
    }
    // Throws std::invalid_argument unless scores [n_scores()] are finite or −inf.
    void check_scores(std::span<const double> scores) const;
    // The score of an assignment [V] of values that are known to be in range.
    double score(std::span<const double> scores, std::span<const std::int32_t> assignment) const;

    std::vector<std::int32_t> cardinalities;  // [V]
    std::vector<std::int64_t> scope_ptr;      // [F + 1]
    std::vector<std::int32_t> scopes;
    std::vector<std::int64_t> table_ptr;  // [F + 1] where each table begins among the scores
    std::vector<std::int64_t> value_ptr;  // [V + 1] where the values of each variable begin among all values
};

}  // namespace crfkit
