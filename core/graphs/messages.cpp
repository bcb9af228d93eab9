#include "graphs/messages.hpp"

namespace crfkit {

template <class Domain>
Messages<Domain>::Workspace::Workspace(const MessagePlan& plan)
    : in(static_cast<std::size_t>(plan.widest)), out(static_cast<std::size_t>(plan.widest)) {
    const std::size_t arity = largest_arity(plan.graph);
    prefix.resize(arity + 1);
    at.resize(arity);
    rows.resize(arity);
}

template <class Domain>
Messages<Domain>::Messages(const MessagePlan& plan, std::span<const double> scores,
                           std::span<const bool> allowed, std::span<const double> appearance)
    : plan_(plan),
      appearance_(appearance),
      own_(static_cast<std::size_t>(plan.graph.value_ptr.back())),
      weights_(scores.size()),
      shifts_(static_cast<std::size_t>(plan.graph.n_tables())),
      messages_(static_cast<std::size_t>(plan.message_ptr.back()), Domain::one) {
    const FactorGraph& graph = plan.graph;
    for (std::size_t i = 0; i < allowed.size(); ++i)
        if (!allowed[i]) own_[i] = kMinusInfinity;
    for (std::int64_t f = 0; f < graph.n_tables(); ++f) {
        const auto table =
            scores.subspan(static_cast<std::size_t>(graph.table_ptr[f]),
                           static_cast<std::size_t>(graph.table_ptr[f + 1] - graph.table_ptr[f]));
        const auto scope = graph.scope(f);
        if (scope.size() == 1)
            for (std::size_t x = 0; x < table.size(); ++x) own_[graph.value_ptr[scope[0]] + x] += table[x];
        const double largest = *std::max_element(table.begin(), table.end());
        if (largest == kMinusInfinity) throw Contradiction{};
        if (scope.empty()) constant_ += table[0];
        if (scope.size() < 2) continue;
        // exp(score / ρ) is divided by exp(maximum / ρ); ρ log Z_f, in the bound, by exp(maximum)
        shifts_[f] = largest;
        for (std::size_t i = 0; i < table.size(); ++i)
            weights_[graph.table_ptr[f] + i] = Domain::of_log((table[i] - largest) / this->appearance(f));
    }
    for (std::int64_t v = 0; v < graph.n_variables(); ++v) {
        double* own = own_.data() + graph.value_ptr[v];
        const double largest = *std::max_element(own, own + graph.cardinalities[v]);
        if (largest == kMinusInfinity) throw Contradiction{};
        constant_ += largest;
        for (std::int32_t x = 0; x < graph.cardinalities[v]; ++x) own[x] = Domain::of_log(own[x] - largest);
    }
    if (!appearance.empty()) raised_ = messages_;
}

template <class Domain>
void Messages<Domain>::belief(std::int64_t variable, double* out) const {
    const std::int64_t begin = plan_.graph.value_ptr[variable], n = plan_.graph.cardinalities[variable];
    const std::vector<double>& given = raised_.empty() ? messages_ : raised_;
    std::copy_n(own_.data() + begin, n, out);
    for (const std::int64_t edge : plan_.messages_to(variable)) {
        const double* m = given.data() + plan_.message_ptr[edge];
        for (std::int64_t x = 0; x < n; ++x) out[x] = Domain::times(out[x], m[x]);
    }
}

template <class Domain>
void Messages<Domain>::cavity(std::int64_t edge, double* out) const {
    const std::int64_t v = plan_.graph.scopes[edge], n = plan_.graph.cardinalities[v];
    if (!raised_.empty()) {
        belief(v, out);  // 0 where the message to be divided by is
        for (std::int64_t x = 0; x < n; ++x)
            if (out[x] != Domain::zero) out[x] = Domain::over(out[x], message(edge)[x]);
    } else {
        std::copy_n(own_.data() + plan_.graph.value_ptr[v], n, out);
        for (const std::int64_t other : plan_.messages_to(v)) {
            if (other == edge) continue;
            const double* m = message(other);
            for (std::int64_t x = 0; x < n; ++x) out[x] = Domain::times(out[x], m[x]);
        }
    }
    normalise<Domain>(out, n);
}

template <class Domain>
void Messages<Domain>::gather(std::int64_t f, Workspace& w) const {
    double* out = w.in.data();
    for (std::int64_t e = plan_.graph.scope_ptr[f]; e < plan_.graph.scope_ptr[f + 1]; ++e) {
        cavity(e, out);
        out += plan_.graph.cardinalities[plan_.graph.scopes[e]];
    }
}

// For each configuration of all variables but the last, with prefix_k = Π_{l<k} ν_l over these and
// row = Σ_x weight ν_last(x):
//   the message to the last variable grows by Π_l ν_l · weight(x),
//   that to variable k by Π_{l<k} ν_l · Π_{k<l} ν_l · row
// which makes two operations for each entry, and a few for each row.
template <class Domain>
void Messages<Domain>::send_any(std::int64_t f, Workspace& w) const {
    const auto scope = plan_.graph.scope(f);
    const std::size_t last = scope.size() - 1;
    std::int64_t offset = 0;
    for (std::size_t k = 0; k <= last; ++k) {
        w.rows[k] = w.in.data() + offset;
        offset += plan_.graph.cardinalities[scope[k]];
    }
    std::fill_n(w.out.data(), offset, Domain::zero);
    std::fill_n(w.at.begin(), last, 0);
    const std::int64_t n = plan_.graph.cardinalities[scope[last]];
    const double* in_last = w.rows[last];
    double* out_last = w.out.data() + (in_last - w.in.data());
    w.prefix[0] = Domain::one;
    for (std::int64_t place = plan_.graph.table_ptr[f]; place < plan_.graph.table_ptr[f + 1]; place += n) {
        for (std::size_t k = 0; k < last; ++k)
            w.prefix[k + 1] = Domain::times(w.prefix[k], w.rows[k][w.at[k]]);
        double row = Domain::zero;
        for (std::int64_t x = 0; x < n; ++x) {
            const double weight = weights_[place + x];
            if (weight == Domain::zero) continue;
            row = Domain::plus(row, Domain::times(weight, in_last[x]));
            out_last[x] = Domain::plus(out_last[x], Domain::times(weight, w.prefix[last]));
        }
        double suffix = row;
        for (std::size_t k = last; k-- > 0;) {
            double& out = w.out[static_cast<std::size_t>(w.rows[k] - w.in.data()) + w.at[k]];
            out = Domain::plus(out, Domain::times(w.prefix[k], suffix));
            suffix = Domain::times(suffix, w.rows[k][w.at[k]]);
        }
        for (std::size_t k = last; k-- > 0;) {
            if (++w.at[k] < plan_.graph.cardinalities[scope[k]]) break;
            w.at[k] = 0;
        }
    }
}

template <class Domain>
void Messages<Domain>::send(std::int64_t f, Workspace& w) const {
    const auto scope = plan_.graph.scope(f);
    const std::int64_t n = plan_.graph.cardinalities[scope[0]];
    if constexpr (!Domain::kLogarithms) {
        if (scope.size() == 2) {
            const auto kernel = Domain::kMaxima ? graph_kernels().pair_maxima : graph_kernels().pair_sums;
            kernel(weights_.data() + plan_.graph.table_ptr[f], n, plan_.graph.cardinalities[scope[1]],
                   w.in.data(), w.in.data() + n, w.out.data(), w.out.data() + n);
        }
    }
    if (Domain::kLogarithms || scope.size() != 2) send_any(f, w);
    double* out = w.out.data();
    for (const std::int32_t v : scope) {
        normalise<Domain>(out, plan_.graph.cardinalities[v]);
        out += plan_.graph.cardinalities[v];
    }
}

template <class Domain>
double Messages<Domain>::difference(std::int64_t f, const double* fresh, double* changes) const {
    double largest = 0;
    for (std::int64_t e = plan_.graph.scope_ptr[f]; e < plan_.graph.scope_ptr[f + 1]; ++e) {
        const std::int64_t n = plan_.graph.cardinalities[plan_.graph.scopes[e]];
        const double* old = message(e);
        double change = 0;
        for (std::int64_t x = 0; x < n; ++x)
            change = std::max(change, std::abs(Domain::to_plain(fresh[x]) - Domain::to_plain(old[x])));
        if (changes) *changes++ = change;
        largest = std::max(largest, change);
        fresh += n;
    }
    return largest;
}

template <class Domain>
void Messages<Domain>::store(std::int64_t f, const double* given, double damping) {
    const std::int64_t begin = plan_.message_ptr[plan_.graph.scope_ptr[f]],
                       end = plan_.message_ptr[plan_.graph.scope_ptr[f + 1]];
    double* m = messages_.data();
    for (std::int64_t i = begin; i < end; ++i) {
        const double fresh = given[i - begin];
        if (damping == 0 || fresh == Domain::zero)  // what is impossible remains so
            m[i] = fresh;
        else if constexpr (Domain::kLogarithms)
            m[i] = Sums<Logarithms>::plus(m[i] + std::log(damping), fresh + std::log1p(-damping));
        else
            m[i] = damping * m[i] + (1 - damping) * fresh;
        if (!raised_.empty()) raised_[i] = Domain::power(m[i], appearance(f));
    }
}

template class Messages<Sums<PlainNumbers>>;
template class Messages<Sums<Logarithms>>;
template class Messages<Maxima<PlainNumbers>>;
template class Messages<Maxima<Logarithms>>;

}  // namespace crfkit
