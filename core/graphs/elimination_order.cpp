#include "graphs/elimination_order.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <random>
#include <tuple>

#include "base/interruption.hpp"

namespace crfkit {
namespace {

using Neighbours = std::vector<std::vector<std::int32_t>>;  // sorted

enum class Rule { min_fill, weighted_min_fill, min_degree };

constexpr std::int64_t kFewestOperations = 4'000;      // spent on tries, however cheap the order
constexpr std::int64_t kMostOperations = 120'000'000;  // about half a second
constexpr std::int64_t kMostOfOneTry = 25'000'000;
constexpr int kMostTries = 1000;
constexpr double kHopeless = 1 << 10;  // times most_cost: a first order so dear is not improved for long
constexpr std::size_t kPart = 2'500;   // variables of a part that is looked at first, …
constexpr std::size_t kManyVariables = 4'000;  // … where there are more than these

Neighbours neighbours_of(std::int64_t n, const std::vector<std::vector<std::int32_t>>& scopes) {
    Neighbours found(n);
    for (const auto& scope : scopes)
        for (const std::int32_t a : scope)
            for (const std::int32_t b : scope)
                if (a != b) found[a].push_back(b);
    for (auto& list : found) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    return found;
}

// One greedy try to eliminate what `begun` has not eliminated yet, from the graph that it left.
class Try {
  public:
    Try(std::span<const std::int32_t> sizes, const EliminationOrder& begun, Neighbours neighbours, Rule rule,
        std::uint64_t seed)
        : order_(begun),
          neighbours_(std::move(neighbours)),
          rule_(rule),
          random_(seed),
          entries_(sizes.begin(), sizes.end()),
          weights_(neighbours_.size(), 1.0),
          around_(neighbours_.size()),
          keys_(neighbours_.size()),
          versions_(neighbours_.size(), 0),
          marks_(neighbours_.size(), -1) {
        for (std::size_t v = 0; rule == Rule::weighted_min_fill && v < weights_.size(); ++v)
            weights_[v] = std::log2(entries_[v]);
        for (const std::int32_t v : begun.variables) versions_[v] = -1;
        for (std::size_t v = 0; v < neighbours_.size(); ++v) {
            if (versions_[v] < 0) continue;
            const auto variable = static_cast<std::int32_t>(v);
            for (const std::int32_t u : neighbours_[v]) around_[v] += weights_[u];
            keys_[v] = rule_ == Rule::min_degree ? log_clique(variable) : missing_weight(variable);
            push(variable);
        }
    }

    // Eliminates all variables, or until the cost exceeds most_cost, the operations exceed most_operations or
    // the next key exceeds most_key.
    EliminationOrder run(double most_cost, std::int64_t most_operations, double most_key = HUGE_VAL) {
        while (!queue_.empty()) {
            const auto [key, tie, v, version] = queue_.top();
            if (version == versions_[v] && key > most_key) return order_;
            queue_.pop();
            if (version != versions_[v]) continue;
            versions_[v] = -1;
            double entries = entries_[v];
            for (const std::int32_t u : neighbours_[v]) entries *= entries_[u];
            order_.cost += entries;
            order_.variables.push_back(v);
            if (entries > order_.largest) {
                order_.largest = entries;
                order_.largest_clique.assign(1, v);
                order_.largest_clique.insert(order_.largest_clique.end(), neighbours_[v].begin(),
                                             neighbours_[v].end());
            }
            if (!(order_.cost <= most_cost) || operations_ > most_operations) return order_;
            eliminate(v);
            pace_.work(operations_ - seen_);
            seen_ = operations_;
        }
        order_.complete = true;
        return order_;
    }

    // What is left of the graph.
    const Neighbours& neighbours() const { return neighbours_; }
    std::int64_t operations() const { return operations_; }

  private:
    double log_clique(std::int32_t v) {
        double sum = std::log2(entries_[v]);
        for (const std::int32_t u : neighbours_[v]) sum += std::log2(entries_[u]);
        operations_ += static_cast<std::int64_t>(neighbours_[v].size()) + 1;
        return sum;
    }

    // Σ of w_a w_b over the pairs of neighbours a, b without an edge.
    double missing_weight(std::int32_t v) {
        const auto& around = neighbours_[v];
        for (const std::int32_t u : around) marks_[u] = v;
        double sum = 0, squares = 0, joined = 0;
        for (const std::int32_t u : around) {
            sum += weights_[u];
            squares += weights_[u] * weights_[u];
            for (const std::int32_t w : neighbours_[u])
                if (marks_[w] == v) joined += weights_[u] * weights_[w];
            operations_ += static_cast<std::int64_t>(neighbours_[u].size());
        }
        for (const std::int32_t u : around) marks_[u] = -1;
        return (sum * sum - squares - joined) / 2;
    }

    void push(std::int32_t v) {
        // a weight that is 0 but for rounding is 0
        const double key = keys_[v] < 1e-6 ? 0.0 : keys_[v];
        queue_.emplace(key, random_(), v, ++versions_[v]);
        operations_ += 8;
    }

    static bool has(const std::vector<std::int32_t>& list, std::int32_t v) {
        return std::binary_search(list.begin(), list.end(), v);
    }
    static void insert(std::vector<std::int32_t>& list, std::int32_t v) {
        list.insert(std::lower_bound(list.begin(), list.end(), v), v);
    }

    void touch(std::int32_t v) {
        if (marks_[v] == -1) {
            marks_[v] = -2;
            changed_.push_back(v);
        }
    }

    // Σ of the weights of those of `some`, which are sorted, that are neighbours of u.
    double weight_of_common(std::int32_t u, const std::vector<std::int32_t>& some) {
        const auto& list = neighbours_[u];
        double sum = 0;
        if (list.size() > 16 * some.size()) {  // u has many more than these
            for (const std::int32_t x : some)
                if (x != u && has(list, x)) sum += weights_[x];
            operations_ += static_cast<std::int64_t>(8 * some.size());
            return sum;
        }
        auto i = some.begin();
        for (const std::int32_t x : list) {
            while (i != some.end() && *i < x) ++i;
            if (i == some.end()) break;
            if (*i == x) sum += weights_[x];
        }
        operations_ += static_cast<std::int64_t>(list.size() + some.size());
        return sum;
    }

    // Adds the edge a — b and updates the weights that are missing: no longer for common neighbours, and
    // newly for a (b beside its other neighbours) and for b.
    void join(std::int32_t a, std::int32_t b) {
        const auto &of_a = neighbours_[a], &of_b = neighbours_[b];
        const double edge = weights_[a] * weights_[b];
        auto i = of_a.begin(), j = of_b.begin();
        double only_a = 0, only_b = 0;
        while (i != of_a.end() || j != of_b.end()) {
            if (j == of_b.end() || (i != of_a.end() && *i < *j)) {
                only_a += weights_[*i++];
            } else if (i == of_a.end() || *j < *i) {
                only_b += weights_[*j++];
            } else {
                keys_[*i] -= edge;
                touch(*i);
                ++i, ++j;
            }
        }
        keys_[a] += weights_[b] * only_a;
        keys_[b] += weights_[a] * only_b;
        operations_ += static_cast<std::int64_t>(of_a.size() + of_b.size());
        insert(neighbours_[a], b);
        insert(neighbours_[b], a);
        around_[a] += weights_[b];
        around_[b] += weights_[a];
    }

    void eliminate(std::int32_t v) {
        const std::vector<std::int32_t> around = std::move(neighbours_[v]);
        neighbours_[v].clear();
        changed_.clear();
        const bool fills = rule_ != Rule::min_degree;
        for (const std::int32_t u : around) {
            auto& list = neighbours_[u];
            list.erase(std::lower_bound(list.begin(), list.end(), v));
            around_[u] -= weights_[v];
            touch(u);
        }
        // v leaves: the pairs (v, x) of u's neighbours that had no edge are no longer missing
        for (std::size_t i = 0; fills && i < around.size(); ++i)
            keys_[around[i]] -= weights_[v] * (around_[around[i]] - weight_of_common(around[i], around));
        for (std::size_t i = 0; i < around.size(); ++i) {
            for (std::size_t j = i + 1; j < around.size(); ++j) {
                operations_ += 4;
                if (has(neighbours_[around[i]], around[j])) continue;
                if (fills) {
                    join(around[i], around[j]);
                } else {
                    insert(neighbours_[around[i]], around[j]);
                    insert(neighbours_[around[j]], around[i]);
                }
            }
        }
        for (const std::int32_t u : changed_) {
            marks_[u] = -1;
            if (versions_[u] < 0) continue;
            if (!fills) keys_[u] = log_clique(u);
            push(u);
        }
    }

    using Entry =
        std::tuple<double, std::uint64_t, std::int32_t, std::int64_t>;  // key, tie, variable, version

    EliminationOrder order_;
    Neighbours neighbours_;
    Rule rule_;
    std::mt19937_64 random_;
    std::vector<double> entries_, weights_;
    std::vector<double> around_;  // Σ of the weights of the neighbours of each variable
    std::vector<double> keys_;
    std::vector<std::int64_t> versions_;  // of the newest entry in the queue; −1: eliminated
    std::vector<std::int32_t> marks_, changed_;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue_;
    std::int64_t operations_ = 0, seen_ = 0;
    Pace pace_;
};

// Variables that are nearest to one with the most neighbours, up to kPart, with the edges between them.
std::vector<std::int32_t> part_of(const Neighbours& neighbours) {
    std::size_t first = 0;
    for (std::size_t v = 1; v < neighbours.size(); ++v)
        if (neighbours[v].size() > neighbours[first].size()) first = v;
    std::vector<std::int32_t> part{static_cast<std::int32_t>(first)};
    std::vector<char> seen(neighbours.size(), 0);
    seen[first] = 1;
    for (std::size_t next = 0; next < part.size() && part.size() < kPart; ++next)
        for (const std::int32_t u : neighbours[part[next]])
            if (!seen[u] && part.size() < kPart) {
                seen[u] = 1;
                part.push_back(u);
            }
    return part;
}

// A part of a graph is never harder than the graph. Where min-fill finds a small part of a large graph far
// too dear, no order of the whole is looked for: this is the order of the part, not complete. Otherwise it is
// empty.
EliminationOrder find_hopeless_part(std::span<const std::int32_t> sizes, const Neighbours& neighbours,
                                    double most_cost) {
    if (sizes.size() <= kManyVariables) return {};
    const std::vector<std::int32_t> part = part_of(neighbours);
    std::vector<std::int32_t> number(sizes.size(), -1), part_sizes;
    for (std::size_t i = 0; i < part.size(); ++i) {
        number[part[i]] = static_cast<std::int32_t>(i);
        part_sizes.push_back(sizes[part[i]]);
    }
    Neighbours inside(part.size());
    for (std::size_t i = 0; i < part.size(); ++i) {
        for (const std::int32_t u : neighbours[part[i]])
            if (number[u] >= 0) inside[i].push_back(number[u]);
        std::sort(inside[i].begin(), inside[i].end());
    }
    EliminationOrder order =
        Try(part_sizes, {}, std::move(inside), Rule::min_fill, 0).run(kHopeless * most_cost, kMostOfOneTry);
    if (!(order.cost > kHopeless * most_cost)) return {};
    order.complete = false;
    for (std::int32_t& v : order.variables) v = part[v];
    for (std::int32_t& v : order.largest_clique) v = part[v];
    return order;
}

}  // namespace

EliminationOrder find_elimination_order(std::span<const std::int32_t> sizes,
                                        const std::vector<std::vector<std::int32_t>>& scopes,
                                        double most_cost) {
    Neighbours neighbours = neighbours_of(static_cast<std::int64_t>(sizes.size()), scopes);
    if (EliminationOrder part = find_hopeless_part(sizes, neighbours, most_cost); !part.variables.empty())
        return part;
    // variables whose neighbours are all joined already come first in some best order: all tries share them
    Try shared(sizes, {}, std::move(neighbours), Rule::min_fill, 0);
    const EliminationOrder begun = shared.run(HUGE_VAL, std::numeric_limits<std::int64_t>::max(), 0.0);
    if (begun.complete) return begun;
    EliminationOrder best;
    std::int64_t spent = 0, budget = kMostOperations;
    for (int number = 0; number < kMostTries && spent < budget; ++number) {
        constexpr Rule rules[] = {Rule::min_fill, Rule::weighted_min_fill, Rule::min_degree};
        // min-degree is the fastest and seldom the best: one try, or where min-fill takes too long
        const bool fast = number == 1 && !best.complete;
        const Rule rule = fast ? Rule::min_degree : number < 3 ? rules[number] : rules[number % 2];
        Try attempt(sizes, begun, shared.neighbours(), rule, static_cast<std::uint64_t>(number));
        // the first try is followed to its end, where that is not too long, so that its width is known
        const double limit = best.complete ? best.cost : number == 0 ? HUGE_VAL : most_cost;
        EliminationOrder order =
            attempt.run(limit, fast ? std::numeric_limits<std::int64_t>::max() : kMostOfOneTry);
        spent += attempt.operations();
        if (order.complete ? !best.complete || order.cost < best.cost : !best.complete)
            best = std::move(order);
        if (fast) break;
        if (best.complete)  // a tenth of the operations of the inference itself
            budget = std::clamp(static_cast<std::int64_t>(std::min(best.cost, 1e12) / 10), kFewestOperations,
                                best.cost > kHopeless * most_cost ? kMostOfOneTry : kMostOperations);
    }
    return best;
}

}  // namespace crfkit
