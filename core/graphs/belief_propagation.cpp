#include "graphs/belief_propagation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graphs/message_schedules.hpp"
#include "graphs/messages.hpp"
#include "graphs/spanning_forests.hpp"

namespace crfkit {

namespace {

constexpr std::int64_t kForests = 16;       // at least, so that appearance probabilities are about even
constexpr double kLowestLogMessage = -600;  // in the bound, where any finite number is valid

// Beliefs from messages, and the terms of the Bethe approximation.
template <class Domain>
class BeliefReader {
  public:
    explicit BeliefReader(const Messages<Domain>& messages)
        : messages_(messages), plan_(messages.plan()), graph_(plan_.graph), w_(plan_) {}

    void read(Beliefs& out) {
        out.of_variables.resize(static_cast<std::size_t>(graph_.value_ptr.back()));
        out.of_tables.resize(static_cast<std::size_t>(graph_.n_scores()));
        double sum = messages_.constant();
        for (std::int64_t v = 0; v < graph_.n_variables(); ++v) {
            double* belief = out.of_variables.data() + graph_.value_ptr[v];
            messages_.belief(v, belief);
            sum += scale(belief, graph_.cardinalities[v]);
        }
        for (std::int64_t f = 0; f < graph_.n_tables(); ++f) {
            double* belief = out.of_tables.data() + graph_.table_ptr[f];
            const auto scope = graph_.scope(f);
            if (scope.empty())
                belief[0] = 1;
            else if (scope.size() == 1)
                std::copy_n(out.of_variables.data() + graph_.value_ptr[scope[0]],
                            graph_.cardinalities[scope[0]], belief);
            else
                sum += read_table(f, belief);
        }
        out.log_partition = sum;
    }

  private:
    // Turns numbers into probabilities, or maxima into shares of the largest; the logarithm of their total.
    double scale(double* x, std::int64_t n) {
        const double largest = *std::max_element(x, x + n);
        Domain::check(largest);
        for (std::int64_t i = 0; i < n; ++i) x[i] = Domain::to_plain(Domain::over(x[i], largest));
        double divisor = 1;
        if constexpr (!Domain::kMaxima) divisor = total<Sums<PlainNumbers>>(x, n);
        for (std::int64_t i = 0; i < n; ++i) x[i] /= divisor;
        return Domain::to_log(largest) + std::log(divisor);
    }

    double read_table(std::int64_t f, double* belief) {
        messages_.gather(f, w_);
        double sum = messages_.shift(f);
        double* in = w_.in.data();
        const auto scope = graph_.scope(f);
        for (std::size_t k = 0; k < scope.size(); ++k) {
            const std::int64_t n = graph_.cardinalities[scope[k]];
            const double* m = messages_.message(graph_.scope_ptr[f] + static_cast<std::int64_t>(k));
            double agreement = Domain::zero;
            for (std::int64_t x = 0; x < n; ++x)
                agreement = Domain::plus(agreement, Domain::times(in[x], m[x]));
            Domain::check(agreement);
            sum -= Domain::to_log(agreement);
            w_.rows[k] = in;
            in += n;
        }
        const std::int64_t begin = graph_.table_ptr[f], size = graph_.table_ptr[f + 1] - begin;
        std::fill_n(belief, size, Domain::zero);
        each_configuration(graph_, f, w_.at, [&](std::int64_t place) {
            if (messages_.weight(place) == Domain::zero) return;
            double product = messages_.weight(place);
            for (std::size_t k = 0; k < scope.size(); ++k)
                product = Domain::times(product, w_.rows[k][w_.at[k]]);
            belief[place - begin] = product;
        });
        return sum + scale(belief, size);
    }

    const Messages<Domain>& messages_;
    const MessagePlan& plan_;
    const FactorGraph& graph_;
    typename Messages<Domain>::Workspace w_;
};

// The beliefs of several states of messages that do not settle, on average: they are nearer to the marginals
// than those of the last state, which is any of many.
class Averages {
  public:
    template <class Reader>
    void add(Reader& reader) {
        Beliefs state;
        reader.read(state);
        ++n_;
        add(state.of_variables, of_variables_);
        add(state.of_tables, of_tables_);
        log_partition_ += state.log_partition;
    }
    void replace(Beliefs& last) {
        if (n_ == 0) return;
        last.n_averaged = n_;
        const double share = 1 / static_cast<double>(n_);
        for (std::size_t i = 0; i < of_variables_.size(); ++i)
            last.of_variables[i] = share * of_variables_[i];
        for (std::size_t i = 0; i < of_tables_.size(); ++i) last.of_tables[i] = share * of_tables_[i];
        last.log_partition = share * log_partition_;
    }

  private:
    static void add(const std::vector<double>& numbers, std::vector<double>& sums) {
        sums.resize(numbers.size());
        for (std::size_t i = 0; i < numbers.size(); ++i) sums[i] += numbers[i];
    }
    std::vector<double> of_variables_, of_tables_;
    double log_partition_ = 0;
    std::int64_t n_ = 0;
};

// A best assignment by max-product messages: variables get their values one after the other, each the best
// for what is fixed before. Without cycles it is optimal, with ties too.
template <class Domain>
std::vector<std::int32_t> decode(const Messages<Domain>& messages) {
    const MessagePlan& plan = messages.plan();
    const FactorGraph& graph = plan.graph;
    typename Messages<Domain>::Workspace w(plan);
    std::vector<std::int32_t> best(static_cast<std::size_t>(graph.n_variables()), -1);
    std::vector<double> belief;
    for (const std::int64_t v : plan.variables) {
        const std::int64_t n = graph.cardinalities[v];
        belief.resize(static_cast<std::size_t>(n));
        messages.own(v, belief.data());
        for (const std::int64_t edge : plan.messages_to(v)) {
            const std::int64_t f = plan.table_of[edge];
            const double* m = messages.message(edge);
            const auto scope = graph.scope(f);
            if (std::any_of(scope.begin(), scope.end(), [&](std::int32_t u) { return best[u] >= 0; })) {
                messages.gather(f, w);
                double* in = w.in.data();
                const double* out = w.out.data();
                for (const std::int32_t u : scope) {
                    if (u == v) m = out;
                    if (best[u] >= 0) {
                        std::fill_n(in, graph.cardinalities[u], Domain::zero);
                        in[best[u]] = Domain::one;
                    }
                    in += graph.cardinalities[u];
                    out += graph.cardinalities[u];
                }
                messages.send(f, w);
            }
            for (std::int64_t x = 0; x < n; ++x) belief[x] = Domain::times(belief[x], m[x]);
        }
        normalise<Domain>(belief.data(), n);
        best[v] = static_cast<std::int32_t>(std::max_element(belief.begin(), belief.end()) - belief.begin());
    }
    return best;
}

// The scores of a forest's graph: those of tables over at most one variable, the messages to each variable,
// and the tables of the forest less the messages that they send.
FactorGraph forest_graph(const FactorGraph& graph, const std::vector<std::int64_t>& forest) {
    std::vector<std::int64_t> ptr{0};
    std::vector<std::int32_t> scopes;
    const auto add = [&](std::span<const std::int32_t> scope) {
        scopes.insert(scopes.end(), scope.begin(), scope.end());
        ptr.push_back(static_cast<std::int64_t>(scopes.size()));
    };
    for (std::int64_t f = 0; f < graph.n_tables(); ++f)
        if (graph.scope(f).size() < 2) add(graph.scope(f));
    for (std::int32_t v = 0; v < graph.n_variables(); ++v) add({&v, 1});
    for (const std::int64_t f : forest) add(graph.scope(f));
    return FactorGraph(graph.cardinalities, ptr, scopes);
}

}  // namespace

BeliefPropagation::BeliefPropagation(const FactorGraph& graph, bool tree_reweighted) : plan_(graph) {
    if (!tree_reweighted || plan_.is_forest) return;
    SpanningForests spanning(graph, kForests);
    appearance_ = std::move(spanning.appearance);
    forests_ = std::move(spanning.forests);
    for (const auto& forest : forests_) of_forests_.emplace_back(forest_graph(graph, forest));
}

template <class Messages>
double BeliefPropagation::upper_bound(const Messages& messages, std::span<const double> scores,
                                      std::span<const bool> allowed, const MessageOptions& options) const {
    const FactorGraph& graph = plan_.graph;
    std::vector<double> logs = messages.log_messages();
    for (double& log : logs) log = std::max(kLowestLogMessage, log);
    double sum = 0;
    std::vector<double> divided;
    std::vector<std::int32_t> at(largest_arity(graph));
    for (std::size_t t = 0; t < forests_.size(); ++t) {
        divided.clear();
        for (std::int64_t f = 0; f < graph.n_tables(); ++f)
            if (graph.scope(f).size() < 2)
                divided.insert(divided.end(), scores.begin() + graph.table_ptr[f],
                               scores.begin() + graph.table_ptr[f + 1]);
        for (std::int64_t v = 0; v < graph.n_variables(); ++v)
            for (std::int32_t x = 0; x < graph.cardinalities[v]; ++x) {
                double own = 0;
                for (const std::int64_t edge : plan_.messages_to(v))
                    own += appearance_[plan_.table_of[edge]] * logs[plan_.message_ptr[edge] + x];
                divided.push_back(own);
            }
        for (const std::int64_t f : forests_[t]) {
            const auto scope = graph.scope(f);
            each_configuration(graph, f, at, [&](std::int64_t place) {
                double score = scores[place] / appearance_[f];
                for (std::size_t k = 0; k < scope.size(); ++k)
                    score -=
                        logs[plan_.message_ptr[graph.scope_ptr[f] + static_cast<std::int64_t>(k)] + at[k]];
                divided.push_back(score);
            });
        }
        const Beliefs forest = of_forests_[t].run(divided, allowed, options);
        if (!forest.possible) throw Contradiction{};
        sum += forest.log_partition;
    }
    return sum / static_cast<double>(forests_.size());
}

template <class Domain>
Beliefs BeliefPropagation::run_in(std::span<const double> scores, std::span<const bool> allowed,
                                  const MessageOptions& options) const {
    Beliefs result;
    result.logarithms = Domain::kLogarithms;
    Messages<Domain> messages(plan_, scores, allowed, appearance_);
    MessageRun<Domain> run(messages, options);
    BeliefReader<Domain> reader(messages);
    Averages averages;
    run.run([&] {
        if (!Domain::kMaxima) averages.add(reader);
    });
    result.residual = run.residual();
    result.iterations = run.iterations();
    result.damping = run.damping();
    result.converged = result.residual < options.tolerance;
    reader.read(result);
    if (!result.converged && run.restless()) averages.replace(result);
    if (options.keep_messages) result.log_messages = messages.log_messages();
    if (!appearance_.empty()) result.log_partition = upper_bound(messages, scores, allowed, options);
    if constexpr (Domain::kMaxima) {
        try {
            result.best = decode(messages);
        } catch (const Contradiction&) {  // what was fixed first excludes the rest
        }
    }
    return result;
}

Beliefs BeliefPropagation::run(std::span<const double> scores, std::span<const bool> allowed,
                               const MessageOptions& options) const {
    try {
        try {
            return options.maximise ? run_in<Maxima<PlainNumbers>>(scores, allowed, options)
                                    : run_in<Sums<PlainNumbers>>(scores, allowed, options);
        } catch (const Underflow&) {
            return options.maximise ? run_in<Maxima<Logarithms>>(scores, allowed, options)
                                    : run_in<Sums<Logarithms>>(scores, allowed, options);
        }
    } catch (const Contradiction&) {
        Beliefs none;
        none.possible = false;
        return none;
    }
}

}  // namespace crfkit
