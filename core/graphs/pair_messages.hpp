// The messages of graphs whose tables have two variables each, all with the same number of values: grids,
// above all. Beliefs are kept, and what all other tables say of a variable is its belief divided by one
// message.
//
// The entries of table f, scaled to at most 1, are at least r_f > 0. So is every number of its messages, and
// a belief is at least Π r_f at the best of the variable's own values. Where this product is above
// kLowestBelief for all variables, no quotient loses digits that matter, and no check is needed. Otherwise it
// is not used.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/interruption.hpp"
#include "graphs/messages.hpp"
#include "kernels/graph_rows.hpp"

namespace crfkit {

template <class Domain>
class PairMessagesOf {
  public:
    explicit PairMessagesOf(Messages<Domain>& messages) : messages_(messages), plan_(messages.plan()) {
        if (Domain::kLogarithms || messages.reweighted() || !alike()) return;
        for (const std::int64_t f : plan_.tables) {
            const std::int64_t e = plan_.graph.scope_ptr[f];
            places_.push_back({copied(f), plan_.message_ptr[e], plan_.graph.value_ptr[plan_.graph.scopes[e]],
                               plan_.graph.value_ptr[plan_.graph.scopes[e + 1]]});
        }
        backwards_.assign(places_.rbegin(), places_.rend());
        beliefs_.resize(static_cast<std::size_t>(plan_.graph.value_ptr.back()));
        refresh();
    }
    bool used() const { return !places_.empty(); }

    // Beliefs from messages, free of the rounding errors of many updates.
    void refresh() {
        if (!used()) return;
        for (std::int64_t v = 0; v < plan_.graph.n_variables(); ++v)
            messages_.belief(v, beliefs_.data() + plan_.graph.value_ptr[v]);
    }
    double update(std::int64_t i, double damping, double* changes) {
        return run(places_.data() + i, 1, damping, nullptr, changes);
    }
    double sweep(bool backwards, double damping) {
        refresh();
        const auto& places = backwards ? backwards_ : places_;
        const auto n = static_cast<std::int64_t>(places.size());
        double largest = 0;
        for (std::int64_t begin = 0; begin < n; begin += kPiece) {
            check_interruption();
            largest = std::max(
                largest, run(places.data() + begin, std::min(kPiece, n - begin), damping, nullptr, nullptr));
        }
        return largest;
    }
    // What an update of tables begin … end − 1 would make of their messages, and their residuals.
    void measure(std::int64_t begin, std::int64_t end, double* fresh, double* residuals) {
        std::vector<double> changes(static_cast<std::size_t>(2 * (end - begin)));
        run(places_.data() + begin, end - begin, 0, fresh, changes.data());
        for (std::int64_t i = begin; i < end; ++i)
            residuals[i] = std::max(changes[2 * (i - begin)], changes[2 * (i - begin) + 1]);
    }
    void store(const std::vector<double>& fresh, double damping) {
        double* m = messages_.all_messages();
        for (std::size_t i = 0; i < fresh.size(); ++i) m[i] = fresh[i] - damping * (fresh[i] - m[i]);
    }

  private:
    static constexpr std::int64_t kPiece = 1 << 14;
    static constexpr double kLowestBelief = 1e-150;

    double run(const PairPlace* places, std::int64_t n, double damping, double* fresh, double* changes) {
        const PairTables tables{n_values_, weights_.data(), messages_.all_messages(), beliefs_.data(),
                                damping};
        const auto kernel = Domain::kMaxima ? graph_kernels().sweep_maxima : graph_kernels().sweep_sums;
        return kernel(tables, places, n, fresh, changes);
    }

    // Where the entries of a table begin among weights_: in the order of use, and equal tables once, so that
    // few numbers go through the caches.
    std::int64_t copied(std::int64_t f) {
        const double* entries = messages_.weights() + plan_.graph.table_ptr[f];
        const auto n = static_cast<std::size_t>(n_values_ * n_values_);
        const std::string_view bytes(reinterpret_cast<const char*>(entries), n * sizeof(double));
        const auto [place, is_new] = known_.emplace(bytes, static_cast<std::int64_t>(weights_.size()));
        if (is_new) weights_.insert(weights_.end(), entries, entries + n);
        return place->second;
    }

    // Whether all tables have two variables with as many values, and beliefs are bounded as said above.
    bool alike() {
        const FactorGraph& graph = plan_.graph;
        std::vector<double> lowest(static_cast<std::size_t>(graph.n_variables()));  // Σ log r_f
        for (const std::int64_t f : plan_.tables) {
            const auto scope = graph.scope(f);
            if (n_values_ == 0) n_values_ = graph.cardinalities[scope[0]];
            if (scope.size() != 2 || graph.cardinalities[scope[0]] != n_values_ ||
                graph.cardinalities[scope[1]] != n_values_ || n_values_ > kMostPairValues)
                return false;
            const double least = *std::min_element(messages_.weights() + graph.table_ptr[f],
                                                   messages_.weights() + graph.table_ptr[f + 1]);
            for (const std::int32_t v : scope)
                if (!((lowest[v] += std::log(least)) > std::log(kLowestBelief))) return false;
        }
        return !plan_.tables.empty();
    }

    Messages<Domain>& messages_;
    const MessagePlan& plan_;
    std::int64_t n_values_ = 0;
    std::vector<PairPlace> places_, backwards_;
    std::vector<double> beliefs_, weights_;
    std::unordered_map<std::string_view, std::int64_t> known_;
};

}  // namespace crfkit
