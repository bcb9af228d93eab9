#include "graphs/junction_tree.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

#include "base/interruption.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kBlock = 1024;   // entries of a block, at most, unless one variable has more values
constexpr double kSmallClique = 256;    // entries up to which tables are not multiplied beforehand
constexpr double kSmallerByFactor = 8;  // tables are multiplied beforehand if the product is so much smaller

constexpr double kLargeMessage = 1 << 14;  // entries from which on a message is worth being spared
constexpr double kLongRow = 1 << 10;       // entries that the message of a merged clique has at least
constexpr double kMostSummed = 256;        // configurations that a merged clique sums over, at most

constexpr double kBytesOfState = 128;  // of each table in JunctionTreeSums

// What the numbers of a list take, as the allocator hands them out.
template <class Number>
double list_bytes(const std::vector<Number>& list) {
    return list.empty() ? 0.0 : std::max(32.0, static_cast<double>(list.capacity() * sizeof(Number)) + 16);
}

// Where the configurations of variables first … last − 1 begin in a table with these strides.
std::vector<std::int64_t> offsets_of(const std::vector<std::int32_t>& sizes,
                                     const std::vector<std::int64_t>& strides, std::int32_t first,
                                     std::int32_t last) {
    std::vector<std::int64_t> offsets{0};
    for (std::int32_t k = first; k < last; ++k) {
        std::vector<std::int64_t> longer;
        for (const std::int64_t offset : offsets)
            for (std::int32_t x = 0; x < sizes[k]; ++x) longer.push_back(offset + x * strides[k]);
        offsets = std::move(longer);
    }
    return offsets;
}

}  // namespace

// A clique that is not decided upon yet: it may become one with the clique that uses its message.
struct JunctionTree::Pending {
    std::vector<std::int32_t> inputs;
    std::vector<std::int32_t> scope;  // the summed variables first
    std::int32_t n_summed_variables;

    std::vector<std::int32_t> separator() const { return {scope.begin() + n_summed_variables, scope.end()}; }
};

double table_bytes(double size) {
    constexpr double huge = 2 << 20;  // as in base/buffer.hpp
    const double bytes = 8 * size;
    return bytes >= huge / 2 ? std::ceil(bytes / huge) * huge : bytes;
}

JunctionTree::JunctionTree(const FactorGraph& graph, std::span<const std::uint8_t> allowed,
                           std::span<const double> scores, double most_bytes)
    : conditioned(graph, allowed, scores),
      value_count(graph.value_ptr.back()),
      first_value(graph.value_ptr),
      n_scores(graph.n_scores()) {
    if (!possible()) {
        order.complete = true;
        return;
    }
    std::vector<std::vector<std::int32_t>> scopes;
    for (const ConditionedGraph::Table& table : conditioned.tables) scopes.push_back(table.scope);
    order = find_elimination_order(conditioned.sizes, scopes, most_bytes * kMostSummed / 8);
    // entries that cannot be numbered
    too_large_ = order.complete && (order.largest > 4e18 || order.cost > 1e17);
    if (!complete()) {
        bytes_ = bytes_of_hessian_vector_ = bytes_of_log_partition_ =
            4 * order.cost;  // messages of two-valued variables are half as large
        operations_ = order.cost;
        return;
    }
    const std::int32_t n = conditioned.n_free();
    rank.resize(n);
    for (std::int32_t i = 0; i < n; ++i) rank[order.variables[i]] = i;

    double n_places = 0;
    for (const ConditionedGraph::Table& table : conditioned.tables) n_places += size_of(table.scope);
    places.reserve(static_cast<std::size_t>(n_places));
    std::vector<std::vector<std::int32_t>> waiting(n);  // tables by the variable whose elimination uses them
    for (const ConditionedGraph::Table& table : conditioned.tables) {
        const std::int32_t added = add_graph_table(table);
        waiting[tables[added].scope.front()].push_back(added);
    }
    std::vector<std::vector<Pending>> pending(
        n);  // cliques, likewise by the variable that uses their messages
    for (const std::int32_t v : order.variables) {
        std::vector<std::int32_t>& inputs = waiting[v];
        if (inputs.empty() && pending[v].empty()) {  // a variable without tables: one that scores nothing
            inputs.push_back(add_table({v}, static_cast<std::int64_t>(places.size())));
            places.insert(places.end(), conditioned.sizes[v], -1);
        }
        std::vector<std::int32_t> scope{v};
        for (const std::int32_t table : inputs) scope = joined(scope, tables[table].scope);
        for (const Pending& message : pending[v]) scope = joined(scope, message.separator());
        Pending clique;
        const bool merged = merge(pending[v], inputs, scope, clique);
        for (Pending& message : pending[v]) {
            const std::int32_t table = eliminate(std::move(message));
            (merged ? clique.inputs : inputs).push_back(table);
        }
        if (!merged) clique = {std::move(inputs), std::move(scope), 1};
        pending[v].clear();
        if (clique.n_summed_variables == static_cast<std::int32_t>(clique.scope.size())) {
            eliminate(std::move(clique));
        } else {
            const std::int32_t user = clique.scope[clique.n_summed_variables];
            pending[user].push_back(std::move(clique));
        }
    }
    measure();
}

std::int32_t JunctionTree::add_table(std::vector<std::int32_t> scope, std::int64_t first_place) {
    const auto size = static_cast<std::int64_t>(size_of(scope));
    tables.push_back({std::move(scope), size, first_place});
    return static_cast<std::int32_t>(tables.size()) - 1;
}

// A table of the graph with its variables sorted by rank, and the places of its entries among the scores.
std::int32_t JunctionTree::add_graph_table(const ConditionedGraph::Table& table) {
    const std::size_t n = table.scope.size();
    std::vector<std::size_t> by_rank(n);
    for (std::size_t k = 0; k < n; ++k) by_rank[k] = k;
    std::sort(by_rank.begin(), by_rank.end(),
              [&](std::size_t a, std::size_t b) { return rank[table.scope[a]] < rank[table.scope[b]]; });
    std::vector<std::int32_t> scope(n), counter(n, 0);
    for (std::size_t k = 0; k < n; ++k) scope[k] = table.scope[by_rank[k]];
    const std::int32_t added = add_table(scope, static_cast<std::int64_t>(places.size()));
    std::int64_t place = table.first;
    for (std::size_t k = 0; k < n; ++k)
        place += table.strides[by_rank[k]] * conditioned.values_of(scope[k])[0];
    for (std::int64_t i = 0; i < tables[added].size; ++i) {
        places.push_back(place);
        for (std::size_t k = n; k-- > 0;) {
            const auto values = conditioned.values_of(scope[k]);
            const std::int64_t stride = table.strides[by_rank[k]];
            if (++counter[k] < static_cast<std::int32_t>(values.size())) {
                place += stride * (values[counter[k]] - values[counter[k] - 1]);
                break;
            }
            counter[k] = 0;
            place += stride * (values[0] - values.back());
        }
    }
    return added;
}

double JunctionTree::size_of(const std::vector<std::int32_t>& scope) const {
    double size = 1;
    for (const std::int32_t v : scope) size *= conditioned.sizes[v];
    return size;
}

std::vector<std::int32_t> JunctionTree::joined(const std::vector<std::int32_t>& a,
                                               const std::vector<std::int32_t>& b) const {
    std::vector<std::int32_t> all;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all),
                   [&](std::int32_t v, std::int32_t w) { return rank[v] < rank[w]; });
    return all;
}

// Whether the clique of these tables and messages, {v} ∪ separator, is a part of one of those that send it
// messages: the largest one, which is removed from the messages and becomes `merged`, with v among its summed
// variables.
bool JunctionTree::merge(std::vector<Pending>& messages, const std::vector<std::int32_t>& inputs,
                         const std::vector<std::int32_t>& scope, Pending& merged) const {
    const double entries = size_of(scope);
    if (entries < kLargeMessage || entries / conditioned.sizes[scope.front()] < kLongRow) return false;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if (messages[i].separator() != scope) continue;
        const double summed = size_of(messages[i].scope) / entries * conditioned.sizes[scope.front()];
        std::size_t large = 0;  // other tables that would be multiplied into more entries
        for (const std::int32_t table : inputs)
            large += static_cast<double>(tables[table].size) * kSmallerByFactor > entries;
        for (std::size_t j = 0; j < messages.size(); ++j)
            large += j != i && size_of(messages[j].separator()) * kSmallerByFactor > entries;
        if (summed > kMostSummed || large > 1) continue;
        merged = std::move(messages[i]);
        messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(i));
        merged.inputs.insert(merged.inputs.end(), inputs.begin(), inputs.end());
        merged.n_summed_variables += 1;
        return true;
    }
    return false;
}

// Multiplies tables of the clique beforehand where the product is much smaller than the clique, smallest
// products first; then the clique itself. Returns its message.
std::int32_t JunctionTree::eliminate(Pending pending) {
    std::vector<std::int32_t>& inputs = pending.inputs;
    const double entries = size_of(pending.scope), limit = entries / kSmallerByFactor;
    if (entries > kSmallClique) {
        // a product has as many entries as its tables or more
        const auto large = std::stable_partition(inputs.begin(), inputs.end(), [&](std::int32_t table) {
            return static_cast<double>(tables[table].size) <= limit;
        });
        std::vector<std::int32_t> products = multiply_same({inputs.begin(), large});
        multiply_pairs(products, limit);
        products.insert(products.end(), large, inputs.end());
        inputs = std::move(products);
    }
    // large tables first, so that a block begins as a copy of a row
    std::stable_sort(inputs.begin(), inputs.end(),
                     [&](std::int32_t a, std::int32_t b) { return tables[a].size > tables[b].size; });
    return add_clique(inputs, pending.n_summed_variables);
}

// Tables of the same variables become one.
std::vector<std::int32_t> JunctionTree::multiply_same(const std::vector<std::int32_t>& inputs) {
    std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> by_scope;
    for (const std::int32_t table : inputs) by_scope[tables[table].scope].push_back(table);
    std::vector<std::int32_t> products;
    for (const auto& [scope, same] : by_scope)
        products.push_back(same.size() == 1 ? same[0] : add_clique(same, 0));
    return products;
}

// Multiplies the two tables with the smallest product, again and again, as long as it has at most `limit`
// entries.
void JunctionTree::multiply_pairs(std::vector<std::int32_t>& inputs, double limit) {
    using Pair = std::tuple<double, std::size_t, std::size_t>;  // size of the product, places of the tables
    std::priority_queue<Pair, std::vector<Pair>, std::greater<Pair>> pairs;
    Pace pace;
    const auto add_pairs = [&](std::size_t b) {
        for (std::size_t a = 0; a < b; ++a) {
            if (inputs[a] < 0) continue;
            const double size = size_of(joined(tables[inputs[a]].scope, tables[inputs[b]].scope));
            if (size <= limit) pairs.emplace(size, a, b);
            pace.work(64);
        }
    };
    for (std::size_t b = 1; b < inputs.size(); ++b) add_pairs(b);
    while (!pairs.empty()) {
        const auto [size, a, b] = pairs.top();
        pairs.pop();
        if (inputs[a] < 0 || inputs[b] < 0) continue;  // multiplied already
        const std::int32_t product = add_clique({inputs[a], inputs[b]}, 0);
        inputs[a] = inputs[b] = -1;
        inputs.push_back(product);
        add_pairs(inputs.size() - 1);
    }
    std::erase(inputs, -1);
}

// How a clique, of which scope and sizes are known, reads a table.
CliqueInput JunctionTree::input_of(const Clique& clique, std::int32_t table,
                                   std::int32_t first_of_block) const {
    CliqueInput input{table, -1, Reading::one, {}, {}, {}, 1, true};
    const auto& own = tables[table].scope;
    for (std::size_t i = 0; i < clique.inputs.size() && input.same_as < 0; ++i)
        if (tables[clique.inputs[i].table].scope == own) input.same_as = static_cast<std::int32_t>(i);

    const auto n = static_cast<std::int32_t>(clique.scope.size());
    std::vector<std::int32_t> sizes(n);
    std::vector<std::int64_t> strides(n, 0);  // of the clique's variables in the table
    std::int64_t stride = 1;
    for (std::int32_t k = n, left = static_cast<std::int32_t>(own.size()); k-- > 0;) {
        sizes[k] = conditioned.sizes[clique.scope[k]];
        if (left == 0 || own[left - 1] != clique.scope[k]) continue;
        strides[k] = stride;
        stride *= sizes[k];
        --left;
    }
    input.summed = offsets_of(sizes, strides, 0, clique.n_summed_variables);
    input.strides.assign(strides.begin() + clique.n_summed_variables, strides.begin() + first_of_block);

    // a run: the last variables of the block, as far as the table has all of them, or none
    std::int32_t first_of_run = n;
    input.constant = first_of_block == n || strides[n - 1] == 0;
    while (first_of_run > first_of_block && (strides[first_of_run - 1] == 0) == input.constant)
        input.run *= sizes[--first_of_run];
    if (input.run == clique.block) {
        input.reading = input.constant ? Reading::one : Reading::row;
    } else {
        input.reading = Reading::runs;
        for (const std::int64_t start : offsets_of(sizes, strides, first_of_block, first_of_run))
            input.starts.push_back(static_cast<std::int32_t>(start));
    }
    return input;
}

std::int32_t JunctionTree::add_clique(const std::vector<std::int32_t>& inputs,
                                      std::int32_t n_summed_variables) {
    Clique clique{};
    for (const std::int32_t table : inputs) clique.scope = joined(clique.scope, tables[table].scope);
    clique.n_summed_variables = n_summed_variables;
    const auto& sizes = conditioned.sizes;
    const auto n = static_cast<std::int32_t>(clique.scope.size());
    std::int32_t first_of_block = n;
    clique.block = clique.n_blocks = clique.n_summed = 1;
    while (first_of_block > n_summed_variables &&
           (clique.block == 1 || clique.block * sizes[clique.scope[first_of_block - 1]] <= kBlock))
        clique.block *= sizes[clique.scope[--first_of_block]];
    for (std::int32_t k = n_summed_variables; k < first_of_block; ++k) {
        clique.outer_sizes.push_back(sizes[clique.scope[k]]);
        clique.n_blocks *= sizes[clique.scope[k]];
    }
    for (std::int32_t k = 0; k < n_summed_variables; ++k) clique.n_summed *= sizes[clique.scope[k]];

    const auto number = static_cast<std::int32_t>(cliques.size());
    for (const std::int32_t table : inputs) {
        tables[table].user = number;
        clique.inputs.push_back(input_of(clique, table, first_of_block));
        if (clique.inputs.back().reading == Reading::row)
            clique.row_input = static_cast<std::int32_t>(clique.inputs.size()) - 1;
    }
    std::vector<std::int32_t> separator(clique.scope.begin() + n_summed_variables, clique.scope.end());
    clique.message = add_table(std::move(separator), -1);
    tables[clique.message].maker = number;
    cliques.push_back(std::move(clique));
    return cliques.back().message;
}

// What the plan itself takes, with the states of its tables that inference adds.
double JunctionTree::bytes_of_plan() const {
    double sum = list_bytes(places) + list_bytes(tables) + list_bytes(cliques) +
                 kBytesOfState * static_cast<double>(tables.size()) +
                 static_cast<double>(conditioned.tables.size()) * sizeof(ConditionedGraph::Table);
    for (const ConditionedGraph::Table& table : conditioned.tables)
        sum += list_bytes(table.scope) + list_bytes(table.strides);
    for (const TreeTable& table : tables) sum += list_bytes(table.scope);
    for (const Clique& clique : cliques) {
        sum += list_bytes(clique.scope) + list_bytes(clique.outer_sizes) + list_bytes(clique.inputs);
        for (const CliqueInput& input : clique.inputs)
            sum += list_bytes(input.summed) + list_bytes(input.strides) + list_bytes(input.starts);
    }
    return sum;
}

// Memory as junction_tree_sums.cpp takes it, and operations.
void JunctionTree::measure() {
    double live = 0, all = 0, transient = 0;
    for (const Clique& clique : cliques) {
        double inputs = 0, distinct = 0;
        for (const CliqueInput& input : clique.inputs) {
            const double bytes = table_bytes(static_cast<double>(tables[input.table].size));
            inputs += bytes;
            if (input.same_as < 0) distinct += static_cast<double>(tables[input.table].size);
            if (tables[input.table].maker < 0) live += bytes;
        }
        const auto message = static_cast<double>(tables[clique.message].size);
        live += table_bytes(message);
        bytes_of_log_partition_ = std::max(bytes_of_log_partition_, live);
        live -= inputs;
        transient = std::max(transient, distinct);
        operations_ += clique.entries() * static_cast<double>(clique.inputs.size());
    }
    for (const TreeTable& table : tables) all += static_cast<double>(table.size);
    const double plan = bytes_of_plan(), answer = 8 * static_cast<double>(value_count + n_scores);
    bytes_of_log_partition_ += plan;
    const double kept = table_bytes(all) + table_bytes(transient);
    bytes_ = plan + kept + answer;
    bytes_of_hessian_vector_ = bytes_ + kept + 8 * static_cast<double>(n_scores);

    table_of.assign(conditioned.n_free(), -1);
    for (std::size_t i = 0; i < tables.size(); ++i)
        for (const std::int32_t v : tables[i].scope)
            if (table_of[v] < 0 || tables[i].size < tables[table_of[v]].size)
                table_of[v] = static_cast<std::int32_t>(i);
}

}  // namespace crfkit
