#include "graphs/cluster_graph.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "graphs/message_domain.hpp"

namespace crfkit {

namespace {

using Scope = std::vector<std::int32_t>;

constexpr std::size_t kMostParts = 64;  // of a variable whose cost is computed
constexpr std::size_t kMostHomes = 16;  // clusters that a table may join: the last ones

Scope joined(const Scope& a, const Scope& b) {  // both sorted
    Scope out;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
    return out;
}

double n_configurations(std::span<const std::int32_t> sizes, const Scope& scope) {
    double n = 1;
    for (const std::int32_t v : scope) n *= sizes[v];
    return n;
}

}  // namespace

std::vector<std::int32_t> order_for_clusters(std::span<const std::int32_t> sizes,
                                             const std::vector<std::vector<std::int32_t>>& scopes,
                                             double largest) {
    const std::size_t n = sizes.size();
    std::vector<Scope> parts;
    std::vector<std::vector<std::size_t>> parts_of(n);
    const auto add = [&](Scope scope) {
        for (const std::int32_t v : scope) parts_of[v].push_back(parts.size());
        parts.push_back(std::move(scope));
    };
    for (Scope scope : scopes) {
        std::sort(scope.begin(), scope.end());
        add(std::move(scope));
    }
    const auto cost = [&](std::int32_t v) {
        if (parts_of[v].size() > kMostParts) return std::numeric_limits<double>::infinity();
        Scope all{v};
        for (const std::size_t part : parts_of[v]) all = joined(all, parts[part]);
        return n_configurations(sizes, all);
    };
    std::set<std::pair<double, std::int32_t>> waiting;
    std::vector<double> costs(n);
    for (std::size_t v = 0; v < n; ++v)
        waiting.emplace(costs[v] = cost(static_cast<std::int32_t>(v)), static_cast<std::int32_t>(v));
    std::vector<std::int32_t> order;
    Pace pace;
    while (!waiting.empty()) {
        const std::int32_t v = waiting.begin()->second;
        waiting.erase(waiting.begin());
        order.push_back(v);
        // the same clusters as those of a Draft, in short
        std::vector<Scope> made;
        Scope touched;
        const std::vector<std::size_t> mine = std::move(parts_of[v]);
        for (const std::size_t part : mine) {
            touched = joined(touched, parts[part]);
            const auto first = made.size() - std::min(made.size(), kMostHomes);
            const auto home = std::find_if(
                made.begin() + static_cast<std::ptrdiff_t>(first), made.end(), [&](const Scope& scope) {
                    return n_configurations(sizes, joined(scope, parts[part])) <= largest;
                });
            if (home == made.end())
                made.push_back(parts[part]);
            else
                *home = joined(*home, parts[part]);
            for (const std::int32_t u : parts[part])
                if (u != v) std::erase(parts_of[u], part);
            parts[part].clear();
        }
        for (Scope& scope : made) {
            std::erase(scope, v);
            if (scope.size() > 1) add(std::move(scope));
        }
        for (const std::int32_t u : touched) {
            if (u == v) continue;
            waiting.erase({costs[u], u});
            waiting.emplace(costs[u] = cost(u), u);
        }
        pace.work(1 << 12);
    }
    return order;
}

// The scopes of clusters, before their tables are made.
struct ClusterGraph::Draft {
    struct Part {  // a table, or what is left of a cluster when its variable is eliminated
        Scope scope;
        std::int64_t table, cluster;
    };
    struct Made {
        Scope scope;
        std::vector<std::int64_t> tables, children;
    };
    std::vector<Made> clusters;
    std::vector<std::vector<std::int32_t>> buckets;  // [V]
    double n_entries = 0;
    std::int64_t n_splits = 0;

    Draft(std::span<const std::int32_t> sizes, std::span<const std::int32_t> order,
          const std::vector<ClusterTable>& tables, double largest, double most_entries) {
        std::vector<std::int32_t> rank(sizes.size());
        for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<std::int32_t>(i);
        std::vector<std::vector<Part>> parts(sizes.size());  // by the variable that is eliminated first
        const auto add = [&](Part part) {
            const auto first = std::min_element(part.scope.begin(), part.scope.end(),
                                                [&](auto a, auto b) { return rank[a] < rank[b]; });
            if (first != part.scope.end()) parts[*first].push_back(std::move(part));
        };
        for (std::size_t f = 0; f < tables.size(); ++f) {
            Scope scope = tables[f].scope;
            std::sort(scope.begin(), scope.end());
            add({std::move(scope), static_cast<std::int64_t>(f), -1});
        }
        buckets.resize(sizes.size());
        for (const std::int32_t v : order) {
            auto& mine = parts[v];
            std::stable_sort(mine.begin(), mine.end(),
                             [](const Part& a, const Part& b) { return a.scope.size() > b.scope.size(); });
            std::vector<std::int32_t>& made = buckets[v];
            for (Part& part : mine) {
                std::int32_t home = -1;
                double least =
                    std::numeric_limits<double>::infinity();  // growth of the cluster that it joins
                for (std::size_t i = made.size() - std::min(made.size(), kMostHomes); i < made.size(); ++i) {
                    const std::int32_t c = made[i];
                    const double before = n_configurations(sizes, clusters[c].scope),
                                 after = n_configurations(sizes, joined(clusters[c].scope, part.scope));
                    if (after > std::max(largest, before) || after / before >= least) continue;
                    home = c;
                    least = after / before;
                }
                if (home < 0) {
                    home = static_cast<std::int32_t>(clusters.size());
                    made.push_back(home);
                    clusters.emplace_back();
                }
                Made& cluster = clusters[home];
                cluster.scope = joined(cluster.scope, part.scope);
                if (part.table >= 0) cluster.tables.push_back(part.table);
                if (part.cluster >= 0) cluster.children.push_back(part.cluster);
            }
            mine.clear();
            n_splits += static_cast<std::int64_t>(made.size()) - 1;
            for (const std::int32_t c : made) {
                n_entries += n_configurations(sizes, clusters[c].scope);
                Scope left = clusters[c].scope;
                std::erase(left, v);
                add({std::move(left), -1, c});
            }
            if (n_entries > most_entries) return;
        }
    }
};

ClusterGraph::ClusterGraph(std::span<const std::int32_t> sizes, std::span<const std::int32_t> order,
                           std::vector<ClusterTable> tables, double largest, double most_entries)
    : sizes_(sizes), order_(order) {
    Draft draft(sizes, order, tables, largest, most_entries);
    while (draft.n_entries > most_entries && largest > 1) {
        largest = largest > 4 ? largest / 4 : 1;
        draft = Draft(sizes, order, tables, largest,
                      largest > 1 ? most_entries : std::numeric_limits<double>::infinity());
    }
    n_entries_ = draft.n_entries;
    n_splits_ = draft.n_splits;
    buckets_ = std::move(draft.buckets);
    clusters_.resize(draft.clusters.size());
    std::int64_t most = 0;
    const auto link = [&](std::int32_t earlier, std::int32_t later, const Scope& separator) {
        const auto number = static_cast<std::int32_t>(links_.size());
        clusters_[earlier].to_later.push_back(number);
        clusters_[later].to_earlier.push_back(number);
        const auto n = static_cast<std::int64_t>(n_configurations(sizes, separator));
        most = std::max(most, n);
        links_.push_back({{earlier, later},
                          {places(draft.clusters[earlier].scope, separator),
                           places(draft.clusters[later].scope, separator)},
                          n});
    };
    for (std::size_t c = 0; c < clusters_.size(); ++c) {
        Draft::Made& made = draft.clusters[c];
        Cluster& cluster = clusters_[c];
        cluster.scores.assign(static_cast<std::size_t>(n_configurations(sizes, made.scope)), 0.0);
        for (const std::int64_t f : made.tables) {
            const std::vector<std::int32_t> at = places(made.scope, tables[f].scope);
            for (std::size_t i = 0; i < at.size(); ++i) cluster.scores[i] += tables[f].scores[at[i]];
            pace_.work(static_cast<std::int64_t>(at.size()) * 8);
            tables[f] = {};
        }
        cluster.scope = made.scope;
    }
    for (const std::int32_t v : order_) {
        const std::vector<std::int32_t>& bucket = buckets_[v];
        for (std::size_t i = 0; i < bucket.size(); ++i) {
            const Draft::Made& made = draft.clusters[bucket[i]];
            for (const std::int64_t child : made.children) {
                Scope separator;
                std::set_intersection(made.scope.begin(), made.scope.end(),
                                      draft.clusters[child].scope.begin(), draft.clusters[child].scope.end(),
                                      std::back_inserter(separator));
                link(static_cast<std::int32_t>(child), bucket[i], separator);
            }
            if (i == 0) continue;
            const Draft::Made& other = draft.clusters[bucket[i - 1]];
            Scope separator;
            std::set_intersection(made.scope.begin(), made.scope.end(), other.scope.begin(),
                                  other.scope.end(), std::back_inserter(separator));
            link(bucket[i - 1], bucket[i], separator);
        }
    }
    moved_.resize(static_cast<std::size_t>(most));
    sums_.resize(moved_.size());
}

// For each configuration of `scope`, in order, the place of its values among the configurations of `part`.
std::vector<std::int32_t> ClusterGraph::places(const Scope& scope, const Scope& part) const {
    std::vector<std::int32_t> strides(scope.size()), at(scope.size());
    std::int32_t stride = 1;
    for (std::size_t k = part.size(); k-- > 0;) {
        strides[std::find(scope.begin(), scope.end(), part[k]) - scope.begin()] = stride;
        stride *= sizes_[part[k]];
    }
    std::vector<std::int32_t> out(static_cast<std::size_t>(n_configurations(sizes_, scope)));
    std::int32_t place = 0;
    for (std::int32_t& one : out) {
        one = place;
        for (std::size_t k = scope.size(); k-- > 0;) {
            place += strides[k];
            if (++at[k] < sizes_[scope[k]]) break;
            place -= strides[k] * at[k];
            at[k] = 0;
        }
    }
    return out;
}

void ClusterGraph::move(Link& link, int from, double share, double epsilon) {
    std::vector<double>&source = clusters_[link.clusters[from]].scores,
    &target = clusters_[link.clusters[1 - from]].scores;
    const std::vector<std::int32_t>&of_source = link.places[from], &of_target = link.places[1 - from];
    std::fill_n(moved_.begin(), link.n, kMinusInfinity);
    for (std::size_t i = 0; i < source.size(); ++i)
        moved_[of_source[i]] = std::max(moved_[of_source[i]], source[i]);
    if (epsilon > 0) {
        std::fill_n(sums_.begin(), link.n, 0.0);
        for (std::size_t i = 0; i < source.size(); ++i)
            if (source[i] > kMinusInfinity)
                sums_[of_source[i]] += std::exp((source[i] - moved_[of_source[i]]) / epsilon);
        for (std::int64_t s = 0; s < link.n; ++s)
            if (moved_[s] > kMinusInfinity) moved_[s] += epsilon * std::log(sums_[s]);
        pace_.work(static_cast<std::int64_t>(source.size()) * 16);
    }
    // −inf: the source excludes these values, whose configurations need no change
    for (std::int64_t s = 0; s < link.n; ++s)
        if (moved_[s] > kMinusInfinity) moved_[s] *= share;
    for (std::size_t i = 0; i < source.size(); ++i) {
        const double delta = moved_[of_source[i]];
        source[i] -= delta > kMinusInfinity ? delta : 0.0;
    }
    for (std::size_t i = 0; i < target.size(); ++i) target[i] += moved_[of_target[i]];
    pace_.work(static_cast<std::int64_t>(2 * source.size() + target.size()) * 2);
}

void ClusterGraph::pass(double epsilon, bool forwards) {
    const auto n = static_cast<std::int64_t>(clusters_.size());
    for (std::int64_t i = 0; i < n; ++i) {
        Cluster& cluster = clusters_[forwards ? i : n - 1 - i];
        const std::vector<std::int32_t>& links = forwards ? cluster.to_later : cluster.to_earlier;
        const std::size_t others = (forwards ? cluster.to_earlier : cluster.to_later).size();
        // equal shares for all links
        std::size_t left = forwards ? links.size() : std::max(links.size(), others);
        for (const std::int32_t link : links)
            move(links_[link], forwards ? 0 : 1, 1.0 / static_cast<double>(left--), epsilon);
    }
}

double ClusterGraph::bound() const {
    double sum = 0;
    for (const Cluster& cluster : clusters_)
        sum += *std::max_element(cluster.scores.begin(), cluster.scores.end());
    return sum;
}

double ClusterGraph::range() const {
    double widest = 0;
    for (const Cluster& cluster : clusters_) {
        double low = std::numeric_limits<double>::infinity(), high = kMinusInfinity;
        for (const double score : cluster.scores) {
            high = std::max(high, score);
            if (score > kMinusInfinity) low = std::min(low, score);
        }
        if (high > low) widest = std::max(widest, high - low);
    }
    return widest;
}

std::vector<std::int32_t> ClusterGraph::decode() const {
    std::vector<std::int32_t> values(sizes_.size());
    std::vector<double> gains;
    for (std::size_t i = order_.size(); i-- > 0;) {
        const std::int32_t v = order_[i];
        gains.assign(static_cast<std::size_t>(sizes_[v]), 0.0);
        for (const std::int32_t c : buckets_[v]) {
            std::int64_t place = 0, stride = 1;
            for (const std::int32_t u : clusters_[c].scope) {
                place = place * sizes_[u] + (u == v ? 0 : values[u]);
                stride = u == v ? 1 : stride * sizes_[u];
            }
            for (std::int32_t x = 0; x < sizes_[v]; ++x) gains[x] += clusters_[c].scores[place + x * stride];
        }
        values[v] = static_cast<std::int32_t>(std::max_element(gains.begin(), gains.end()) - gains.begin());
    }
    return values;
}

std::vector<ClusterTable> ClusterGraph::take_tables() {
    std::vector<ClusterTable> out;
    out.reserve(clusters_.size());
    for (Cluster& cluster : clusters_) out.push_back({std::move(cluster.scope), std::move(cluster.scores)});
    return out;
}

}  // namespace crfkit
