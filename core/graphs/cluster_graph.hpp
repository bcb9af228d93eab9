// Upper bounds on the best score of a factor graph, from clusters of its variables.
//
// Every table is put into a cluster; a cluster C is a table θ_C over some variables, and Σ_C θ_C(y_C) =
// score(y) for all y. Then
//   max_y score(y) ≤ Σ_C max θ_C,
// and moving numbers from one cluster to another that shares the variables S,
//   θ_C −= δ(y_S),  θ_D += δ(y_S),
// changes no score. With δ = λ max_{y_C \ S} θ_C, 0 ≤ λ ≤ 1, the bound never rises: max θ_C becomes (1 − λ)
// of what it was, and max θ_D gains at most the rest. Passes forwards and backwards over the clusters make
// such moves along all links, as sequential reweighted message passing does (Kolmogorov 2015). With max
// replaced by its smooth version ε log Σ exp(· / ε) a move may raise the bound, but passes do not stop at
// points that are not the lowest (Meshi, Jaakkola and Globerson 2012).
//
// Clusters are mini-buckets (Dechter and Rish 2003): variables are eliminated in some order; the tables that
// hold a variable, and what is left of clusters before, are joined as long as a cluster has at most `largest`
// configurations. The larger they are, the lower is the bound: without any limit they are a junction tree,
// and it is the best score.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/interruption.hpp"

namespace crfkit {

struct ClusterTable {
    std::vector<std::int32_t> scope;
    std::vector<double> scores;  // the last variable of the scope is the fastest
};

// An order for clusters with at most `largest` configurations: the next variable is the one whose tables, and
// what is left of clusters before, have the fewest configurations together.
std::vector<std::int32_t> order_for_clusters(std::span<const std::int32_t> sizes,
                                             const std::vector<std::vector<std::int32_t>>& scopes,
                                             double largest);

class ClusterGraph {
  public:
    // sizes [V]; order [V] in which variables are eliminated; every variable has a table. Clusters have at
    // most `largest` configurations, tables that have more apart, and together at most most_entries: else
    // `largest` is made smaller.
    ClusterGraph(std::span<const std::int32_t> sizes, std::span<const std::int32_t> order,
                 std::vector<ClusterTable> tables, double largest, double most_entries);

    // Moves along all links, from the first cluster to the last or back.
    void forward(double epsilon) { pass(epsilon, true); }
    void backward(double epsilon) { pass(epsilon, false); }
    // Σ_C max θ_C; −inf: no assignment is possible.
    double bound() const;
    // Variables in reverse order, each the value with the best θ of the clusters that were made when it was
    // eliminated, given the values before.
    std::vector<std::int32_t> decode() const;

    bool is_exact() const { return n_splits_ == 0; }  // a junction tree
    double range() const;                             // of the finite numbers of a cluster, at most
    double n_entries() const { return n_entries_; }
    // The tables of all clusters: the same scores. They are gone here afterwards.
    std::vector<ClusterTable> take_tables();

  private:
    struct Cluster {
        std::vector<std::int32_t> scope;
        std::vector<double> scores;
        std::vector<std::int32_t> to_earlier, to_later;  // numbers of links
    };
    struct Link {
        std::int32_t clusters[2];             // the earlier one first
        std::vector<std::int32_t> places[2];  // of their configurations among those of the separator
        std::int64_t n;                       // configurations of the separator
    };
    struct Draft;

    void pass(double epsilon, bool forwards);
    void move(Link& link, int from, double share, double epsilon);
    std::vector<std::int32_t> places(const std::vector<std::int32_t>& scope,
                                     const std::vector<std::int32_t>& part) const;

    std::span<const std::int32_t> sizes_, order_;
    std::vector<Cluster> clusters_;
    std::vector<std::vector<std::int32_t>> buckets_;  // [V] the clusters that a variable was eliminated from
    std::vector<Link> links_;
    std::vector<double> moved_, sums_;
    double n_entries_ = 0;
    std::int64_t n_splits_ = 0;
    Pace pace_;
};

}  // namespace crfkit
