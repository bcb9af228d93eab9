#include "graphs/map_dual.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/interruption.hpp"
#include "graphs/assignment_search.hpp"
#include "graphs/configurations.hpp"
#include "graphs/forest_blocks.hpp"
#include "graphs/message_domain.hpp"

namespace crfkit {

namespace {

constexpr int kDecodeEvery = 5;          // passes
constexpr double kShrink = 0.5;          // of ε
constexpr double kLowestEpsilon = 1e-7;  // relative to the spread of the scores; below it 0

class MapDual {
  public:
    // Values that `possible` excludes have δ = 0 and are never looked at.
    MapDual(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed,
            const PossibleValues& possible)
        : plan_(plan),
          graph_(plan.graph),
          scores_(scores),
          possible_(possible),
          own_(own_scores(graph_, scores, allowed)),
          delta_(static_cast<std::size_t>(plan.message_ptr.back())),
          mu_(delta_.size()),
          at_(largest_arity(graph_)) {
        for (std::int64_t f = 0; f < graph_.n_tables(); ++f)
            if (graph_.scope(f).empty()) constant_ += scores[graph_.table_ptr[f]];
    }

    // The best δ to one variable for the others.
    void update(std::int64_t v, double epsilon) {
        const std::int64_t n = graph_.cardinalities[v];
        const auto edges = plan_.messages_to(v);
        const auto begin = own_.begin() + graph_.value_ptr[v];
        share_.assign(begin, begin + n);
        for (const std::int64_t edge : edges) {
            marginal(edge, epsilon, {});
            for (std::int64_t x = 0; x < n; ++x) share_[x] += mu_[plan_.message_ptr[edge] + x];
        }
        for (const std::int64_t edge : edges)
            for (std::int32_t x = 0; x < n; ++x)
                if (possible_.has(v, x))
                    delta_[plan_.message_ptr[edge] + x] =
                        mu_[plan_.message_ptr[edge] + x] - share_[x] / static_cast<double>(edges.size() + 1);
    }

    double bound() {
        double sum = constant_;
        for (std::int64_t v = 0; v < graph_.n_variables(); ++v) {
            double largest = kMinusInfinity;
            for (std::int32_t x = 0; x < graph_.cardinalities[v]; ++x) {
                if (!possible_.has(v, x)) continue;
                double b = own_[graph_.value_ptr[v] + x];
                for (const std::int64_t edge : plan_.messages_to(v)) b += delta_[plan_.message_ptr[edge] + x];
                largest = std::max(largest, b);
            }
            sum += largest;
        }
        for (const std::int64_t f : plan_.tables) {
            double largest = kMinusInfinity;
            each_possible(f, -1, {}, [&](double score) { largest = std::max(largest, score); });
            sum += largest;
        }
        return sum;
    }

    // Variables get values one after the other, each the best for δ and the values before. Values may turn
    // out to exclude each other: then the score is −inf.
    std::vector<std::int32_t> decode() {
        std::vector<std::int32_t> best(static_cast<std::size_t>(graph_.n_variables()), -1);
        for (const std::int64_t v : plan_.variables) {
            const std::int64_t n = graph_.cardinalities[v];
            const auto begin = own_.begin() + graph_.value_ptr[v];
            share_.assign(begin, begin + n);
            for (const std::int64_t edge : plan_.messages_to(v)) {
                const auto scope = graph_.scope(plan_.table_of[edge]);
                const bool some =
                    std::any_of(scope.begin(), scope.end(), [&](std::int32_t u) { return best[u] >= 0; });
                if (some) marginal(edge, 0, best);
                const double* gain = (some ? mu_ : delta_).data() + plan_.message_ptr[edge];
                for (std::int64_t x = 0; x < n; ++x) share_[x] += gain[x];
            }
            std::int32_t top = -1;
            for (std::int32_t x = 0; x < n; ++x)
                if (possible_.has(v, x) && (top < 0 || share_[x] > share_[top])) top = x;
            best[v] = top;
        }
        return best;
    }

  private:
    // Calls visit(score_f − Σ_{j} δ_{f→j}) for each possible configuration that agrees with `fixed` (−1:
    // free), without the δ of the variable at edge `out` and of fixed ones.
    template <class Visit>
    void each_possible(std::int64_t f, std::int64_t out, std::span<const std::int32_t> fixed,
                       const Visit& visit) {
        const auto scope = graph_.scope(f);
        const std::int64_t first = graph_.scope_ptr[f];
        each_configuration(graph_, f, at_, [&](std::int64_t place) {
            double score = scores_[place];
            if (score == kMinusInfinity) return;
            for (std::size_t k = 0; k < scope.size(); ++k) {
                const std::int64_t edge = first + static_cast<std::int64_t>(k), v = scope[k];
                if (!possible_.has(v, at_[k])) return;
                const bool is_fixed = !fixed.empty() && fixed[v] >= 0;
                if (is_fixed && fixed[v] != at_[k]) return;
                if (edge != out && !is_fixed) score -= delta_[plan_.message_ptr[edge] + at_[k]];
            }
            visit(score);
        });
        pace_.work(2 * (graph_.table_ptr[f + 1] - graph_.table_ptr[f]));
    }

    // μ_{f→i} of an edge, into mu_.
    void marginal(std::int64_t edge, double epsilon, std::span<const std::int32_t> fixed) {
        const std::int64_t f = plan_.table_of[edge], n = graph_.cardinalities[graph_.scopes[edge]];
        const auto own = static_cast<std::size_t>(edge - graph_.scope_ptr[f]);
        double* mu = mu_.data() + plan_.message_ptr[edge];
        std::fill_n(mu, n, kMinusInfinity);
        each_possible(f, edge, fixed, [&](double score) { mu[at_[own]] = std::max(mu[at_[own]], score); });
        if (epsilon > 0) {
            sums_.assign(static_cast<std::size_t>(n), 0.0);
            each_possible(f, edge, fixed, [&](double score) {
                sums_[at_[own]] += std::exp((score - mu[at_[own]]) / epsilon);
            });
            for (std::int64_t x = 0; x < n; ++x)
                if (mu[x] > kMinusInfinity) mu[x] += epsilon * std::log(sums_[x]);
        }
    }

    const MessagePlan& plan_;
    const FactorGraph& graph_;
    std::span<const double> scores_;
    const PossibleValues& possible_;
    std::vector<double> own_, delta_, mu_, share_, sums_;
    std::vector<std::int32_t> at_;
    double constant_ = 0;
    Pace pace_;
};

// Gives blocks that are forests their best values, for several divisions into blocks, as long as the score
// rises.
class BlockAscent {
  public:
    BlockAscent(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed)
        : plan_(plan), scores_(scores) {
        Random random(1);
        std::vector<std::int64_t> order = plan.variables;
        divisions_.reserve(kDivisions);  // ascents refer to them
        for (int d = 0; d < kDivisions; ++d) {
            divisions_.emplace_back(plan, order, true);
            ascents_.emplace_back(plan, divisions_.back(), scores, allowed);
            for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
        }
    }
    // Of a possible assignment; returns its score.
    double improve(std::vector<std::int32_t>& assignment) {
        double score = plan_.graph.score(scores_, assignment);
        for (int unchanged = 0, d = 0; unchanged < kDivisions; d = (d + 1) % kDivisions) {
            std::vector<std::int32_t> next = assignment;
            ascents_[d].maximise(next);
            const double after = plan_.graph.score(scores_, next);
            unchanged = after > score ? 0 : unchanged + 1;
            if (after > score) {
                score = after;
                assignment = std::move(next);
            }
        }
        return score;
    }

  private:
    static constexpr int kDivisions = 4;
    const MessagePlan& plan_;
    std::span<const double> scores_;
    std::vector<GibbsBlocks> divisions_;
    std::vector<ForestBlocks<Maxima<Logarithms>>> ascents_;
};

// The widest range of finite scores that a table has.
double spread(const MessagePlan& plan, std::span<const double> scores) {
    double widest = 0;
    for (std::int64_t f = 0; f < plan.graph.n_tables(); ++f) {
        double low = std::numeric_limits<double>::infinity(), high = -low;
        for (std::int64_t i = plan.graph.table_ptr[f]; i < plan.graph.table_ptr[f + 1]; ++i)
            if (scores[i] > kMinusInfinity) {
                low = std::min(low, scores[i]);
                high = std::max(high, scores[i]);
            }
        widest = std::max(widest, high - low);
    }
    return widest;
}

}  // namespace

MapSolution solve_map(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed,
                      const MapOptions& options) {
    MapSolution result;
    PossibleValues possible(plan, scores, allowed);
    result.possible = possible.propagate();
    for (std::int64_t f = 0; f < plan.graph.n_tables(); ++f)
        if (plan.graph.scope(f).empty() && scores[plan.graph.table_ptr[f]] == kMinusInfinity)
            result.possible = false;
    if (!result.possible) return result;

    MapDual dual(plan, scores, allowed, possible);
    BlockAscent ascent(plan, scores, allowed);
    result.score = kMinusInfinity;
    result.bound = dual.bound();
    const auto consider = [&](std::vector<std::int32_t> assignment) {
        if (plan.graph.score(scores, assignment) == kMinusInfinity) return;
        const double score = ascent.improve(assignment);
        if (score > result.score) {
            result.score = score;
            result.best = std::move(assignment);
        }
        result.optimal =
            result.bound - result.score <= options.tolerance * std::max(1.0, std::abs(result.score));
    };
    const double widest = spread(plan, scores);
    double epsilon = 0.1 * widest, at_stage = result.bound;
    for (std::int64_t in_stage = 0; !result.optimal && result.iterations < options.max_iterations;
         ++in_stage) {
        for (const std::int64_t v : plan.variables) dual.update(v, epsilon);
        const double bound = dual.bound();
        result.bound = std::min(result.bound, bound);
        result.bounds.push_back(result.bound);
        if (++result.iterations % kDecodeEvery == 1) consider(dual.decode());
        // a stage ends when its bound falls by little in a few passes
        if (in_stage % kDecodeEvery != kDecodeEvery - 1) continue;
        const double gain = at_stage - bound;
        at_stage = bound;
        if (gain > (epsilon > 0 ? 1e-3 : 1e-7) * std::max(1.0, std::abs(bound)) *
                       (epsilon > 0 ? epsilon / widest : 1))
            continue;
        if (epsilon == 0) {
            result.converged = true;
            break;
        }
        epsilon = epsilon * kShrink < kLowestEpsilon * widest ? 0 : epsilon * kShrink;
        in_stage = -1;
    }
    if (!result.optimal) consider(dual.decode());
    if (result.best.empty()) {
        try {
            if (auto found = find_assignment(plan, scores, allowed, {}))
                consider(std::move(*found));
            else
                result.possible = false;
        } catch (const SearchSpent&) {  // an assignment may exist
        }
    }
    return result;
}

}  // namespace crfkit
