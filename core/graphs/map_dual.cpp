#include "graphs/map_dual.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "graphs/assignment_search.hpp"
#include "graphs/cluster_graph.hpp"
#include "graphs/elimination_order.hpp"
#include "graphs/local_search.hpp"
#include "graphs/message_domain.hpp"

namespace crfkit {

namespace {

constexpr double kMostEntries = 1 << 22;  // of all clusters
constexpr double kGrowth = 64;            // of clusters, from one stage to the next
constexpr double kRounding = 4 * std::numeric_limits<double>::epsilon();
constexpr int kLookBack = 5;             // passes, whose gain says whether a stage goes on
constexpr double kLeastGain = 0.01;      // of the gap, in so many passes
constexpr double kSmooth = 0.1;          // ε at first, of the largest range of scores; it is halved each pass
constexpr double kSmoothEnd = 1e-4;      // below which it is 0
constexpr double kMostSmooth = 1 << 18;  // entries of all clusters, with which exponentials are not too slow
constexpr std::int64_t kDecisions = 1 << 14,
                       kMostDecisions = 1 << 18;  // of the search for any possible assignment
constexpr int kRounds = 5, kSweeps = 120;         // rounds that find nothing, and sweeps of annealing in each
constexpr int kRegions = 40;                      // that are renewed in a round
constexpr std::int64_t kSmallestRegion = 20, kLargestRegion = 220;  // variables

std::vector<std::int32_t> choose_order(const MessagePlan& plan, double cluster_size) {
    const FactorGraph& graph = plan.graph;
    std::vector<std::vector<std::int32_t>> scopes;
    for (const std::int64_t f : plan.tables)
        scopes.emplace_back(graph.scope(f).begin(), graph.scope(f).end());
    EliminationOrder order = find_elimination_order(graph.cardinalities, scopes, 0);
    if (order.complete) return std::move(order.variables);
    const double share = kMostEntries / static_cast<double>(graph.n_variables());
    return order_for_clusters(graph.cardinalities, scopes, std::min(share, cluster_size));
}

class MapSolver {
  public:
    MapSolver(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed,
              const PossibleValues& possible, const MapOptions& options)
        : plan_(plan),
          graph_(plan.graph),
          scores_(scores),
          allowed_(allowed),
          options_(options),
          order_(choose_order(plan, options.cluster_size)),
          search_(plan, scores, allowed) {
        std::vector<double> own = own_scores(graph_, scores, allowed);
        for (std::int64_t v = 0; v < graph_.n_variables(); ++v) {
            for (std::int32_t x = 0; x < graph_.cardinalities[v]; ++x)
                if (!possible.has(v, x)) own[graph_.value_ptr[v] + x] = kMinusInfinity;
            tables_.push_back({{static_cast<std::int32_t>(v)},
                               {own.begin() + graph_.value_ptr[v], own.begin() + graph_.value_ptr[v + 1]}});
        }
        for (std::int64_t f = 0; f < graph_.n_tables(); ++f) {
            const auto begin = scores.begin() + graph_.table_ptr[f],
                       end = scores.begin() + graph_.table_ptr[f + 1];
            if (graph_.scope(f).empty()) constant_ += *begin;
            double largest = 0;
            for (auto score = begin; score != end; ++score)
                if (*score > kMinusInfinity) largest = std::max(largest, std::abs(*score));
            magnitude_ += largest;
            if (graph_.scope(f).size() > 1)
                tables_.push_back({{graph_.scope(f).begin(), graph_.scope(f).end()}, {begin, end}});
        }
        result_.scale = std::min(1.0, magnitude_);
        result_.score = kMinusInfinity;
        result_.bound = std::numeric_limits<double>::infinity();
    }

    MapSolution solve(std::span<const std::int32_t> start) {
        if (!start.empty()) consider({start.begin(), start.end()});
        ClusterGraph whole(graph_.cardinalities, order_, tables_, options_.cluster_size, kMostEntries);
        if (whole.is_exact()) {
            run(whole, true);
        } else {
            double size = 1, n_entries = 0;
            for (bool more = true; more && !is_done();) {
                ClusterGraph clusters(graph_.cardinalities, order_, std::move(tables_), size, kMostEntries);
                const bool grew = clusters.n_entries() > n_entries;
                n_entries = clusters.n_entries();
                more = grew && size < options_.cluster_size;
                if (grew) run(clusters, !more);
                size = std::min(size * kGrowth, options_.cluster_size);
                tables_ = clusters.take_tables();
            }
        }
        if (result_.possible && result_.best.empty()) find_any({}, kMostDecisions);
        if (result_.possible && !result_.optimal && !result_.best.empty()) explore();
        return std::move(result_);
    }

  private:
    bool is_done() const {
        return !result_.possible || result_.optimal || result_.iterations >= options_.max_iterations;
    }
    // Without an assignment nothing is proved.
    bool meets() const {
        const double slack = options_.tolerance * std::max(result_.scale, std::abs(result_.score));
        return result_.score > kMinusInfinity && result_.bound - result_.score <= slack;
    }

    // Passes, until the bound falls no further.
    void run(ClusterGraph& clusters, bool is_last) {
        descend(clusters, 0);
        if (is_last && !is_done() && clusters.n_entries() <= kMostSmooth)
            descend(clusters, kSmooth * clusters.range());
    }
    void descend(ClusterGraph& clusters, double epsilon) {
        const double lowest = kSmoothEnd * epsilon;
        std::vector<double> bounds;
        while (!is_done()) {
            clusters.forward(epsilon);
            ++result_.iterations;
            lower(clusters.bound());
            if (!result_.possible) return;
            consider(clusters.decode());
            if (result_.best.empty() && bounds.empty()) find_any(clusters.decode(), kDecisions);
            bounds.push_back(result_.bound);
            result_.bounds.push_back(result_.bound);
            if (is_done()) return;
            const double gap = result_.best.empty() ? std::abs(result_.bound) : result_.bound - result_.score;
            result_.converged = epsilon == 0 && bounds.size() > kLookBack &&
                                bounds[bounds.size() - 1 - kLookBack] - result_.bound <= kLeastGain * gap;
            if (result_.converged) return;
            clusters.backward(epsilon);
            epsilon = epsilon / 2 > lowest ? epsilon / 2 : 0;
        }
    }
    void lower(double bound) {
        if (bound == kMinusInfinity) result_.possible = false;
        // numbers that were moved are rounded each time
        bound += constant_ + static_cast<double>(result_.iterations) * kRounding * magnitude_;
        if (bound < result_.bound) result_.bound = bound;
        result_.optimal = meets();
    }
    void consider(std::vector<std::int32_t> values) {
        if (!is_possible(values)) {
            if (!result_.best.empty() && search_.combine(result_.best, values)) keep(result_.best);
            return;
        }
        search_.climb(values);
        if (result_.best.empty()) return keep(std::move(values));
        if (search_.score(values) > result_.score) std::swap(values, result_.best);
        search_.combine(result_.best, values);
        keep(std::move(result_.best));
    }
    void keep(std::vector<std::int32_t> values) {
        result_.score = search_.climb(values);
        result_.best = std::move(values);
        result_.optimal = meets();
    }
    bool is_possible(std::span<const std::int32_t> values) const {
        for (std::size_t v = 0; v < values.size() && !allowed_.empty(); ++v)
            if (!allowed_[graph_.value_ptr[v] + values[v]]) return false;
        return search_.score(values) > kMinusInfinity;
    }
    // A possible assignment by backtracking, with as many of these values as it is led to.
    void find_any(const std::vector<std::int32_t>& wished, std::int64_t most) {
        std::vector<double> preference(static_cast<std::size_t>(graph_.value_ptr.back()));
        for (std::size_t v = 0; v < wished.size(); ++v) preference[graph_.value_ptr[v] + wished[v]] = 1;
        try {
            if (auto found = find_assignment(plan_, scores_, allowed_, preference, most))
                consider(std::move(*found));
            else
                result_.possible = false;
        } catch (const SearchSpent&) {  // an assignment may exist
        }
    }
    // Large changes of the best assignment, as long as some round of them makes it better.
    void explore() {
        const auto n = static_cast<std::int64_t>(result_.best.size());
        std::int64_t left = options_.most_regions;
        for (int unchanged = 0; unchanged < kRounds && left > 0 && !result_.optimal;) {
            const double before = result_.score;
            std::vector<std::int32_t> values = result_.best;
            for (int i = 0; i < kRegions && left > 0 && !result_.optimal; ++i, --left) {
                const std::int64_t centre = below(n);
                search_.renew(values, centre, kSmallestRegion + below(kLargestRegion - kSmallestRegion));
                // clusters that were split may leave a variable no value but one that is excluded
                const double after = is_possible(values) ? search_.score(values) : kMinusInfinity;
                if (after > result_.score) keep(values);
                if (after != result_.score) values = result_.best;  // as good: go on from there
            }
            values = result_.best;
            search_.anneal(values, random_, kSweeps);
            consider(std::move(values));
            unchanged = result_.score > before ? 0 : unchanged + 1;
        }
    }
    std::int64_t below(std::int64_t n) {
        return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
    }

    const MessagePlan& plan_;
    const FactorGraph& graph_;
    std::span<const double> scores_;
    std::span<const bool> allowed_;
    const MapOptions& options_;
    std::vector<std::int32_t> order_;
    std::vector<ClusterTable> tables_;
    LocalSearch search_;
    double constant_ = 0, magnitude_ = 0;  // of tables without variables; Σ_f max |score_f|
    Random random_{1};
    MapSolution result_;
};

}  // namespace

MapSolution solve_map(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed,
                      const MapOptions& options, std::span<const std::int32_t> start) {
    PossibleValues possible(plan, scores, allowed);
    bool some = possible.propagate();
    for (std::int64_t f = 0; f < plan.graph.n_tables(); ++f)
        if (plan.graph.scope(f).empty() && scores[plan.graph.table_ptr[f]] == kMinusInfinity) some = false;
    if (!some) {
        MapSolution none;
        none.possible = false;
        return none;
    }
    return MapSolver(plan, scores, allowed, possible, options).solve(start);
}

}  // namespace crfkit
