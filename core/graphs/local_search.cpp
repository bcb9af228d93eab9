#include "graphs/local_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "graphs/cluster_graph.hpp"

namespace crfkit {

namespace {

constexpr double kFirstBeta = 0.1, kLastBeta = 30;  // inverse temperatures, for tables with a range of 1
constexpr int kTemperatures = 12;
constexpr double kRegionSize = 1 << 14,
                 kRegionEntries = 1 << 18;  // of clusters of variables that are renewed

// The mean range of finite scores of the tables over two or more variables.
double mean_range(const MessagePlan& plan, std::span<const double> scores) {
    double sum = 0;
    for (const std::int64_t f : plan.tables) {
        double low = std::numeric_limits<double>::infinity(), high = -low;
        for (std::int64_t i = plan.graph.table_ptr[f]; i < plan.graph.table_ptr[f + 1]; ++i)
            if (scores[i] > kMinusInfinity) {
                low = std::min(low, scores[i]);
                high = std::max(high, scores[i]);
            }
        if (high > low) sum += high - low;
    }
    return plan.tables.empty() ? 0.0 : sum / static_cast<double>(plan.tables.size());
}

template <class Domain>
void sweep_blocks(const MessagePlan& plan, const GibbsBlocks& blocks, std::span<const double> scores,
                  std::span<const bool> allowed, std::vector<std::int32_t>& state, Random& random, int n) {
    ForestBlocks<Domain> chain(plan, blocks, scores, allowed);
    for (int i = 0; i < n; ++i) chain.sweep(state, random, nullptr);
}

}  // namespace

LocalSearch::LocalSearch(const MessagePlan& plan, std::span<const double> scores,
                         std::span<const bool> allowed)
    : plan_(plan),
      scores_(scores),
      allowed_(allowed),
      own_(own_scores(plan.graph, scores, allowed)),
      typical_(mean_range(plan, scores)) {
    Random random(1);
    std::vector<std::int64_t> order = plan.variables;
    divisions_.reserve(kDivisions);  // ascents refer to them
    for (int d = 0; d < kDivisions; ++d) {
        divisions_.emplace_back(plan, order, true);
        ascents_.emplace_back(plan, divisions_.back(), scores, allowed);
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    }
}

double LocalSearch::climb(std::vector<std::int32_t>& assignment) {
    double best = score(assignment);
    for (int unchanged = 0, d = 0; unchanged < kDivisions; d = (d + 1) % kDivisions) {
        std::vector<std::int32_t> next = assignment;
        ascents_[d].maximise(next);
        const double after = score(next);
        unchanged = after > best ? 0 : unchanged + 1;
        if (after > best) {
            best = after;
            assignment = std::move(next);
        }
    }
    return best;
}

bool LocalSearch::combine(std::vector<std::int32_t>& best, std::span<const std::int32_t> other) const {
    const FactorGraph& graph = plan_.graph;
    std::vector<std::int32_t> group(best.size());
    std::iota(group.begin(), group.end(), 0);
    const auto root = [&](std::int32_t v) {
        while (group[v] != v) v = group[v] = group[group[v]];
        return v;
    };
    const auto first_changed = [&](std::int64_t f) {
        for (const std::int32_t v : graph.scope(f))
            if (best[v] != other[v]) return v;
        return std::int32_t{-1};
    };
    for (const std::int64_t f : plan_.tables) {
        const std::int32_t first = first_changed(f);
        if (first < 0) continue;
        for (const std::int32_t v : graph.scope(f))
            if (best[v] != other[v]) group[root(v)] = root(first);
    }
    std::vector<double> gains(best.size());
    for (std::int64_t f = 0; f < graph.n_tables(); ++f) {
        const std::int32_t first = first_changed(f);
        if (first < 0) continue;
        std::int64_t now = 0, then = 0;
        for (const std::int32_t v : graph.scope(f)) {
            now = now * graph.cardinalities[v] + best[v];
            then = then * graph.cardinalities[v] + other[v];
        }
        gains[root(first)] += scores_[graph.table_ptr[f] + then] - scores_[graph.table_ptr[f] + now];
    }
    const auto n = static_cast<std::int32_t>(best.size());
    for (std::int32_t v = 0; v < n; ++v)
        if (!allowed_.empty() && !allowed_[graph.value_ptr[v] + other[v]]) gains[root(v)] = kMinusInfinity;
    bool changed = false;
    for (std::int32_t v = 0; v < n; ++v)
        if (best[v] != other[v] && gains[root(v)] > 0) {
            best[v] = other[v];
            changed = true;
        }
    return changed;
}

void LocalSearch::renew(std::vector<std::int32_t>& assignment, std::int64_t centre, std::int64_t n) const {
    const FactorGraph& graph = plan_.graph;
    std::vector<std::int32_t> members{static_cast<std::int32_t>(centre)}, number(assignment.size(), -1);
    std::vector<std::int64_t> tables;
    number[centre] = 0;
    // breadth first; tables are noted by the member that comes first
    for (std::size_t next = 0; next < members.size(); ++next)
        for (const std::int64_t edge : plan_.messages_to(members[next])) {
            const auto scope = graph.scope(plan_.table_of[edge]);
            bool noted = false;
            for (const std::int32_t u : scope) {
                noted = noted || (number[u] >= 0 && number[u] < static_cast<std::int32_t>(next));
                if (number[u] >= 0 || static_cast<std::int64_t>(members.size()) >= n) continue;
                number[u] = static_cast<std::int32_t>(members.size());
                members.push_back(u);
            }
            if (!noted) tables.push_back(plan_.table_of[edge]);
        }
    std::vector<std::int32_t> sizes;
    std::vector<ClusterTable> given;
    std::vector<std::vector<std::int32_t>> scopes;
    for (const std::int32_t v : members) {
        const std::int32_t size = graph.cardinalities[v];
        const auto begin = own_.begin() + graph.value_ptr[v];
        given.push_back({{number[v]}, {begin, begin + size}});
        sizes.push_back(size);
    }
    for (const std::int64_t f : tables) {
        given.push_back(condition(f, assignment, number));
        scopes.push_back(given.back().scope);
    }
    const std::vector<std::int32_t> order = order_for_clusters(sizes, scopes, kRegionSize);
    ClusterGraph clusters(sizes, order, std::move(given), kRegionSize, kRegionEntries);
    clusters.forward(0);
    const std::vector<std::int32_t> values = clusters.decode();
    for (std::size_t i = 0; i < members.size(); ++i) assignment[members[i]] = values[i];
}

// A table given the values of variables without a number.
ClusterTable LocalSearch::condition(std::int64_t f, std::span<const std::int32_t> assignment,
                                    std::span<const std::int32_t> number) const {
    const FactorGraph& graph = plan_.graph;
    ClusterTable out;
    std::vector<std::int64_t> strides;
    std::vector<std::int32_t> free, at;
    std::int64_t place = graph.table_ptr[f], stride = 1;
    for (std::size_t k = graph.scope(f).size(); k-- > 0;) {
        const std::int32_t v = graph.scope(f)[k];
        if (number[v] >= 0) {
            out.scope.push_back(number[v]);
            free.push_back(v);
            strides.push_back(stride);
        } else {
            place += stride * assignment[v];
        }
        stride *= graph.cardinalities[v];
    }
    at.assign(free.size(), 0);
    for (bool more = true; more;) {  // the first variable is the fastest, for now
        out.scores.push_back(scores_[place]);
        more = false;
        for (std::size_t k = 0; k < free.size() && !more; ++k) {
            place += strides[k];
            more = ++at[k] < graph.cardinalities[free[k]];
            if (more) break;
            place -= strides[k] * at[k];
            at[k] = 0;
        }
    }
    std::reverse(out.scope.begin(), out.scope.end());
    return out;
}

void LocalSearch::anneal(std::vector<std::int32_t>& assignment, Random& random, int n_sweeps) {
    if (typical_ == 0) return;
    std::vector<double> scaled(scores_.size());
    for (int t = 0; t < kTemperatures; ++t) {
        const double beta = kFirstBeta *
                            std::pow(kLastBeta / kFirstBeta, t / static_cast<double>(kTemperatures - 1)) /
                            typical_;
        for (std::size_t i = 0; i < scaled.size(); ++i)
            scaled[i] = scores_[i] > kMinusInfinity ? beta * scores_[i] : kMinusInfinity;
        const GibbsBlocks& blocks = divisions_[t % kDivisions];
        const int n = n_sweeps / kTemperatures + 1;
        const std::vector<std::int32_t> before = assignment;
        try {
            sweep_blocks<Sums<PlainNumbers>>(plan_, blocks, scaled, allowed_, assignment, random, n);
        } catch (const Underflow&) {
            assignment = before;
            sweep_blocks<Sums<Logarithms>>(plan_, blocks, scaled, allowed_, assignment, random, n);
        }
    }
}

}  // namespace crfkit
