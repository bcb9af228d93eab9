#include "graphs/conditioned_graph.hpp"

#include <cmath>
#include <deque>

#include "base/interruption.hpp"

namespace crfkit {
namespace {

// Removes values until each that is left has, in every table, a configuration above −inf of values left.
class Propagation {
  public:
    Propagation(const FactorGraph& graph, std::span<const double> scores, std::vector<std::uint8_t>& left)
        : graph_(graph), scores_(scores), left_(left), waits_(graph.n_tables(), 0) {
        tables_of_.resize(graph.n_variables());
        for (std::int64_t f = 0; f < graph.n_tables(); ++f) {
            bool some = false;
            for (std::int64_t i = graph.table_ptr[f]; i < graph.table_ptr[f + 1] && !some; ++i)
                some = scores[i] == -HUGE_VAL;
            if (!some) continue;  // all of its configurations are possible: it removes nothing
            for (const std::int32_t v : graph.scope(f)) tables_of_[v].push_back(f);
            wait(f);
        }
    }

    void run() {
        Pace pace;
        while (!queue_.empty()) {
            const std::int64_t f = queue_.front();
            queue_.pop_front();
            waits_[f] = 0;
            pace.work(4 * (graph_.table_ptr[f + 1] - graph_.table_ptr[f]));
            revise(f);
        }
    }

  private:
    void wait(std::int64_t f) {
        if (waits_[f]) return;
        waits_[f] = 1;
        queue_.push_back(f);
    }

    void revise(std::int64_t f) {
        const auto scope = graph_.scope(f);
        const std::size_t n = scope.size();
        counter_.assign(n, 0);
        supported_.assign(n, {});
        for (std::size_t k = 0; k < n; ++k) supported_[k].assign(graph_.cardinalities[scope[k]], 0);
        for (std::int64_t place = graph_.table_ptr[f]; place < graph_.table_ptr[f + 1]; ++place) {
            bool possible = scores_[place] > -HUGE_VAL;
            for (std::size_t k = 0; k < n && possible; ++k)
                possible = left_[graph_.value_ptr[scope[k]] + counter_[k]];
            if (possible)
                for (std::size_t k = 0; k < n; ++k) supported_[k][counter_[k]] = 1;
            for (std::size_t k = n; k-- > 0;) {
                if (++counter_[k] < graph_.cardinalities[scope[k]]) break;
                counter_[k] = 0;
            }
        }
        for (std::size_t k = 0; k < n; ++k) {
            bool changed = false;
            for (std::int32_t x = 0; x < graph_.cardinalities[scope[k]]; ++x) {
                std::uint8_t& left = left_[graph_.value_ptr[scope[k]] + x];
                if (left && !supported_[k][x]) {
                    left = 0;
                    changed = true;
                }
            }
            if (!changed) continue;
            for (const std::int64_t other : tables_of_[scope[k]])
                if (other != f) wait(other);
        }
    }

    const FactorGraph& graph_;
    std::span<const double> scores_;
    std::vector<std::uint8_t>& left_;  // [Σ cardinalities]
    std::vector<std::vector<std::int64_t>> tables_of_;
    std::vector<std::uint8_t> waits_;
    std::deque<std::int64_t> queue_;
    std::vector<std::int32_t> counter_;
    std::vector<std::vector<std::uint8_t>> supported_;
};

}  // namespace

ConditionedGraph::ConditionedGraph(const FactorGraph& graph, std::span<const std::uint8_t> allowed,
                                   std::span<const double> scores) {
    std::vector<std::uint8_t> left(allowed.begin(), allowed.end());
    if (left.empty()) left.assign(graph.value_ptr.back(), 1);
    if (!scores.empty()) Propagation(graph, scores, left).run();

    std::vector<std::int32_t> free_number(graph.n_variables(), -1);
    fixed.assign(graph.n_variables(), -1);
    for (std::int32_t v = 0; v < graph.n_variables(); ++v) {
        const auto before = static_cast<std::int64_t>(values.size());
        for (std::int32_t x = 0; x < graph.cardinalities[v]; ++x)
            if (left[graph.value_ptr[v] + x]) values.push_back(x);
        const auto count = static_cast<std::int32_t>(values.size()) - static_cast<std::int32_t>(before);
        if (count == 0) possible = false;
        if (count < 2) {
            fixed[v] = count ? values.back() : 0;
            values.resize(before);
        } else {
            free_number[v] = n_free();
            variable.push_back(v);
            sizes.push_back(count);
            value_ptr.push_back(before);
        }
    }
    for (std::int64_t f = 0; f < graph.n_tables(); ++f) {
        Table table{f, {}, graph.table_ptr[f], {}};
        const auto scope = graph.scope(f);
        std::int64_t stride = 1;
        for (std::size_t k = scope.size(); k-- > 0;) {
            const std::int32_t v = scope[k];
            if (fixed[v] >= 0) {
                table.first += stride * fixed[v];
            } else {
                table.scope.insert(table.scope.begin(), free_number[v]);
                table.strides.insert(table.strides.begin(), stride);
            }
            stride *= graph.cardinalities[v];
        }
        if (table.scope.empty())
            constants.push_back(table.first);
        else
            tables.push_back(std::move(table));
    }
}

}  // namespace crfkit
