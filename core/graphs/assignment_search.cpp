#include "graphs/assignment_search.hpp"

#include <algorithm>
#include <numeric>

#include "base/interruption.hpp"
#include "graphs/configurations.hpp"
#include "graphs/message_domain.hpp"

namespace crfkit {

std::vector<double> own_scores(const FactorGraph& graph, std::span<const double> scores,
                               std::span<const bool> allowed) {
    std::vector<double> own(static_cast<std::size_t>(graph.value_ptr.back()));
    for (std::size_t i = 0; i < allowed.size(); ++i)
        if (!allowed[i]) own[i] = kMinusInfinity;
    for (std::int64_t f = 0; f < graph.n_tables(); ++f)
        if (graph.scope(f).size() == 1)
            for (std::int64_t i = graph.table_ptr[f]; i < graph.table_ptr[f + 1]; ++i)
                own[graph.value_ptr[graph.scope(f)[0]] + i - graph.table_ptr[f]] += scores[i];
    return own;
}

PossibleValues::PossibleValues(const MessagePlan& plan, std::span<const double> scores,
                               std::span<const bool> allowed)
    : plan_(plan),
      scores_(scores),
      left_(static_cast<std::size_t>(plan.graph.value_ptr.back()), 1),
      n_left_(plan.graph.cardinalities),
      queue_(plan.tables.rbegin(), plan.tables.rend()),
      queued_(static_cast<std::size_t>(plan.graph.n_tables()), 1),
      supported_(static_cast<std::size_t>(plan.widest)),
      at_(largest_arity(plan.graph)) {
    const std::vector<double> own = own_scores(plan.graph, scores, allowed);
    for (std::int64_t v = 0; v < plan.graph.n_variables(); ++v)
        for (std::int32_t x = 0; x < plan.graph.cardinalities[v]; ++x)
            if (own[plan.graph.value_ptr[v] + x] == kMinusInfinity) remove(v, x);
}

void PossibleValues::remove(std::int64_t variable, std::int32_t value) {
    left_[plan_.graph.value_ptr[variable] + value] = 0;
    --n_left_[variable];
    removed_.emplace_back(variable, value);
    for (const std::int64_t edge : plan_.messages_to(variable)) {
        const std::int64_t f = plan_.table_of[edge];
        if (queued_[f]) continue;
        queued_[f] = 1;
        queue_.push_back(f);
    }
}

bool PossibleValues::prune(std::int64_t f) {
    const FactorGraph& graph = plan_.graph;
    const auto scope = graph.scope(f);
    std::fill(supported_.begin(), supported_.end(), 0);
    each_configuration(graph, f, at_, [&](std::int64_t place) {
        if (scores_[place] == kMinusInfinity) return;
        for (std::size_t k = 0; k < scope.size(); ++k)
            if (!has(scope[k], at_[k])) return;
        std::int64_t offset = 0;
        for (std::size_t k = 0; k < scope.size(); ++k) {
            supported_[offset + at_[k]] = 1;
            offset += graph.cardinalities[scope[k]];
        }
    });
    const char* supported = supported_.data();
    for (const std::int32_t v : scope) {
        for (std::int32_t x = 0; x < graph.cardinalities[v]; ++x)
            if (has(v, x) && !supported[x]) remove(v, x);
        if (n_left_[v] == 0) return false;
        supported += graph.cardinalities[v];
    }
    return true;
}

bool PossibleValues::propagate() {
    Pace pace;
    for (const std::int32_t n : n_left_)
        if (n == 0) return false;
    while (!queue_.empty()) {
        const std::int64_t f = queue_.back();
        queue_.pop_back();
        const bool possible = prune(f);
        queued_[f] = 0;  // what it removed itself needs no second look
        pace.work(plan_.graph.table_ptr[f + 1] - plan_.graph.table_ptr[f]);
        if (possible) continue;
        for (const std::int64_t g : queue_) queued_[g] = 0;
        queue_.clear();
        return false;
    }
    return true;
}

bool PossibleValues::fix(std::int64_t variable, std::int32_t value) {
    for (std::int32_t x = 0; x < plan_.graph.cardinalities[variable]; ++x)
        if (x != value && has(variable, x)) remove(variable, x);
    return propagate();
}

void PossibleValues::undo(std::size_t n_removed) {
    for (; removed_.size() > n_removed; removed_.pop_back()) {
        const auto [v, x] = removed_.back();
        left_[plan_.graph.value_ptr[v] + x] = 1;
        ++n_left_[v];
    }
}

std::optional<std::vector<std::int32_t>> find_assignment(const MessagePlan& plan,
                                                         std::span<const double> scores,
                                                         std::span<const bool> allowed,
                                                         std::span<const double> preference,
                                                         std::int64_t most) {
    const FactorGraph& graph = plan.graph;
    for (std::int64_t f = 0; f < graph.n_tables(); ++f)
        if (graph.scope(f).empty() && scores[graph.table_ptr[f]] == kMinusInfinity) return std::nullopt;
    PossibleValues values(plan, scores, allowed);
    if (!values.propagate()) return std::nullopt;
    struct Decision {
        std::size_t removed;                // before it
        std::vector<std::int32_t> untried;  // the next one last
    };
    std::vector<Decision> decisions;
    const auto n = plan.variables.size();
    std::int64_t n_made = 0;
    Pace pace;
    while (decisions.size() < n) {
        const std::int64_t v = plan.variables[decisions.size()];
        Decision& next = decisions.emplace_back(Decision{values.n_removed(), {}});
        for (std::int32_t x = 0; x < graph.cardinalities[v]; ++x)
            if (values.has(v, x)) next.untried.push_back(x);
        const double* wish = preference.empty() ? nullptr : preference.data() + graph.value_ptr[v];
        std::stable_sort(next.untried.begin(), next.untried.end(), [&](std::int32_t a, std::int32_t b) {
            return wish && wish[a] != wish[b] ? wish[a] < wish[b] : a > b;
        });
        for (bool found = false; !found;) {
            while (!decisions.empty() && decisions.back().untried.empty()) {
                values.undo(decisions.back().removed);
                decisions.pop_back();
            }
            if (decisions.empty()) return std::nullopt;
            Decision& last = decisions.back();
            values.undo(last.removed);
            const std::int32_t x = last.untried.back();
            last.untried.pop_back();
            found = values.fix(plan.variables[decisions.size() - 1], x);
            if (++n_made > most + static_cast<std::int64_t>(n)) throw SearchSpent{};
            pace.work(64);
        }
    }
    std::vector<std::int32_t> out(n);
    for (std::int64_t v = 0; v < graph.n_variables(); ++v)
        while (!values.has(v, out[v])) ++out[v];
    return out;
}

void add_conditional_scores(const MessagePlan& plan, std::span<const double> scores,
                            std::span<const std::int32_t> assignment, std::int64_t variable, double* out) {
    const FactorGraph& graph = plan.graph;
    for (const std::int64_t edge : plan.messages_to(variable)) {
        const std::int64_t f = plan.table_of[edge];
        std::int64_t place = 0, stride = 1;
        for (const std::int32_t u : graph.scope(f)) {
            const std::int64_t n = graph.cardinalities[u];
            place = place * n + (u == variable ? 0 : assignment[u]);
            stride = u == variable ? 1 : stride * n;
        }
        const double* table = scores.data() + graph.table_ptr[f] + place;
        for (std::int32_t x = 0; x < graph.cardinalities[variable]; ++x) out[x] += table[x * stride];
    }
}

void improve(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed,
             std::vector<std::int32_t>& assignment) {
    const FactorGraph& graph = plan.graph;
    const std::vector<double> own = own_scores(graph, scores, allowed);
    std::vector<double> conditional;
    Pace pace;
    for (bool changed = true; changed;) {
        changed = false;
        for (const std::int64_t v : plan.variables) {
            const auto begin = own.begin() + graph.value_ptr[v];
            conditional.assign(begin, begin + graph.cardinalities[v]);
            add_conditional_scores(plan, scores, assignment, v, conditional.data());
            const auto best = std::max_element(conditional.begin(), conditional.end());
            pace.work(graph.cardinalities[v] * 16);
            if (*best <= conditional[assignment[v]]) continue;
            assignment[v] = static_cast<std::int32_t>(best - conditional.begin());
            changed = true;
        }
    }
}

}  // namespace crfkit
