#include "graphs/belief_derivative.hpp"

#include <algorithm>
#include <cmath>

#include "base/interruption.hpp"
#include "graphs/assignment_search.hpp"
#include "graphs/configurations.hpp"
#include "graphs/message_domain.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kMostSweeps = 10'000;
constexpr double kSolved = 1e-12;  // the largest change of a λ, relative to the largest λ

// Numbers x as a distribution, in place: exp(x) / Σ exp(x); zeros where all are −inf.
void normalise_logs(double* x, std::int64_t n) {
    const double largest = *std::max_element(x, x + n);
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i)
        sum += x[i] = largest > kMinusInfinity ? std::exp(x[i] - largest) : 0;
    for (std::int64_t i = 0; i < n && sum > 0; ++i) x[i] /= sum;
}

}  // namespace

BeliefDerivative::BeliefDerivative(const MessagePlan& plan, std::span<const double> scores,
                                   std::span<const double> log_messages, std::span<const double> appearance,
                                   double damping)
    : plan_(plan),
      graph_(plan.graph),
      appearance_(appearance.begin(), appearance.end()),
      damping_(damping),
      beliefs_(scores.size()),
      given_(plan.table_of.size()),
      reference_(plan.table_of.size()),
      lambda_(log_messages.size()),
      totals_(static_cast<std::size_t>(graph_.value_ptr.back())),
      fresh_(static_cast<std::size_t>(plan.widest)),
      cavities_(static_cast<std::size_t>(plan.widest)),
      at_(largest_arity(graph_)) {
    const std::vector<double> own = own_scores(graph_, scores, {});
    std::vector<double> belief;
    for (std::int64_t v = 0; v < graph_.n_variables(); ++v) {
        belief.assign(own.begin() + graph_.value_ptr[v], own.begin() + graph_.value_ptr[v + 1]);
        for (const std::int64_t edge : plan.messages_to(v))
            for (std::size_t x = 0; x < belief.size(); ++x)
                belief[x] += this->appearance(plan.table_of[edge]) *
                             log_messages[plan.message_ptr[edge] + static_cast<std::int64_t>(x)];
        normalise_logs(belief.data(), static_cast<std::int64_t>(belief.size()));
        std::copy(belief.begin(), belief.end(), totals_.begin() + graph_.value_ptr[v]);
    }
    for (std::int64_t f = 0; f < graph_.n_tables(); ++f) {
        const auto scope = graph_.scope(f);
        if (scope.empty()) beliefs_[graph_.table_ptr[f]] = 1;
        if (scope.size() == 1)
            std::copy_n(totals_.begin() + graph_.value_ptr[scope[0]], graph_.cardinalities[scope[0]],
                        beliefs_.begin() + graph_.table_ptr[f]);
        if (scope.size() > 1) weigh(f, scores, own, log_messages);
    }
}

// The beliefs of a table, and p(x_f | x_i) for each of its variables.
void BeliefDerivative::weigh(std::int64_t f, std::span<const double> scores, const std::vector<double>& own,
                             std::span<const double> log_messages) {
    const auto scope = graph_.scope(f);
    const std::int64_t begin = graph_.table_ptr[f], size = graph_.table_ptr[f + 1] - begin;
    double* logs = cavities_.data();
    std::vector<std::int64_t> first;  // of each variable's numbers among the logs
    std::int64_t offset = 0;
    for (std::size_t k = 0; k < scope.size(); ++k) {
        const std::int64_t edge = graph_.scope_ptr[f] + static_cast<std::int64_t>(k), v = scope[k];
        first.push_back(offset);
        for (std::int32_t x = 0; x < graph_.cardinalities[v]; ++x) {
            double sum = own[graph_.value_ptr[v] + x];
            for (const std::int64_t other : plan_.messages_to(v)) {
                const double power = appearance(plan_.table_of[other]) - (other == edge);
                if (power != 0) sum += power * log_messages[plan_.message_ptr[other] + x];
            }
            logs[offset + x] = std::isnan(sum) ? kMinusInfinity : sum;  // 0 divided by 0 is 0
        }
        const double* m = log_messages.data() + plan_.message_ptr[edge];
        reference_[edge] = static_cast<std::int32_t>(std::max_element(m, m + graph_.cardinalities[v]) - m);
        offset += graph_.cardinalities[v];
    }
    double* belief = beliefs_.data() + begin;
    each_configuration(graph_, f, at_, [&](std::int64_t place) {
        double sum = scores[place] / appearance(f);
        for (std::size_t k = 0; k < scope.size(); ++k) sum += logs[first[k] + at_[k]];
        belief[place - begin] = sum;
    });
    normalise_logs(belief, size);
    for (std::size_t k = 0; k < scope.size(); ++k) {
        std::vector<double>& given = given_[graph_.scope_ptr[f] + static_cast<std::int64_t>(k)];
        const std::int64_t n = graph_.cardinalities[scope[k]];
        given.resize(static_cast<std::size_t>(size));
        std::vector<double> largest(static_cast<std::size_t>(n), kMinusInfinity), sums(largest.size());
        each_configuration(graph_, f, at_, [&](std::int64_t place) {
            double sum = scores[place] / appearance(f);
            for (std::size_t j = 0; j < scope.size(); ++j)
                if (j != k) sum += logs[first[j] + at_[j]];
            given[place - begin] = sum;
            largest[at_[k]] = std::max(largest[at_[k]], sum);
        });
        each_configuration(graph_, f, at_, [&](std::int64_t place) {
            double& p = given[place - begin];
            sums[at_[k]] += p = p > kMinusInfinity ? std::exp(p - largest[at_[k]]) : 0;
        });
        each_configuration(graph_, f, at_, [&](std::int64_t place) {
            if (sums[at_[k]] > 0) given[place - begin] /= sums[at_[k]];
        });
    }
}

// The λ of the messages of a table for those of all others; the largest change.
double BeliefDerivative::update(std::int64_t f, std::span<const double> direction) {
    const auto scope = graph_.scope(f);
    const std::int64_t begin = graph_.table_ptr[f];
    std::int64_t width = 0;
    for (std::size_t k = 0; k < scope.size(); ++k) {
        const std::int64_t edge = graph_.scope_ptr[f] + static_cast<std::int64_t>(k);
        for (std::int32_t x = 0; x < graph_.cardinalities[scope[k]]; ++x)
            cavities_[width++] =
                totals_[graph_.value_ptr[scope[k]] + x] - lambda_[plan_.message_ptr[edge] + x];
    }
    std::fill_n(fresh_.begin(), width, 0.0);
    each_configuration(graph_, f, at_, [&](std::int64_t place) {
        double sum = direction[place] / appearance(f);
        std::int64_t offset = 0;
        for (std::size_t k = 0; k < scope.size(); ++k) {
            sum += cavities_[offset + at_[k]];
            offset += graph_.cardinalities[scope[k]];
        }
        offset = 0;
        for (std::size_t k = 0; k < scope.size(); ++k) {
            const std::int64_t edge = graph_.scope_ptr[f] + static_cast<std::int64_t>(k);
            const double p = given_[edge][place - begin];
            if (p > 0) fresh_[offset + at_[k]] += p * (sum - cavities_[offset + at_[k]]);
            offset += graph_.cardinalities[scope[k]];
        }
    });
    double largest = 0;
    std::int64_t offset = 0;
    for (std::size_t k = 0; k < scope.size(); ++k) {
        const std::int64_t edge = graph_.scope_ptr[f] + static_cast<std::int64_t>(k);
        const double constant = fresh_[offset + reference_[edge]];
        for (std::int32_t x = 0; x < graph_.cardinalities[scope[k]]; ++x) {
            double& old = lambda_[plan_.message_ptr[edge] + x];
            const double change = fresh_[offset + x] - constant - old, taken = (1 - damping_) * change;
            totals_[graph_.value_ptr[scope[k]] + x] += appearance(f) * taken;
            old += taken;
            largest = std::max(largest, std::abs(change));
        }
        offset += graph_.cardinalities[scope[k]];
    }
    return largest;
}

double BeliefDerivative::sweep(std::span<const double> direction, bool backwards) {
    const std::size_t n = plan_.tables.size();
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i)
        largest = std::max(largest, update(plan_.tables[backwards ? n - 1 - i : i], direction));
    return largest;
}

bool BeliefDerivative::along(std::span<const double> direction, double* changes) {
    std::fill(lambda_.begin(), lambda_.end(), 0.0);
    totals_ = own_scores(graph_, direction, {});
    bool solved = plan_.tables.empty();
    double largest = 0;
    for (std::int64_t i = 0; !solved && i < kMostSweeps; ++i) {
        check_interruption();
        const double change = sweep(direction, i % 2 == 0);
        largest = 0;
        for (const double x : lambda_) largest = std::max(largest, std::abs(x));
        if (!std::isfinite(largest)) return false;
        solved = (plan_.is_forest && i == 1) || change <= kSolved * largest;
    }
    // a = ∂ score / ρ + Σ_j ∂ log ν_j, and for tables of single variables ∂ own + Σ ρ λ
    for (std::int64_t f = 0; f < graph_.n_tables(); ++f) {
        const auto scope = graph_.scope(f);
        double mean = 0;
        each_configuration(graph_, f, at_, [&](std::int64_t place) {
            double a = scope.size() > 1 ? direction[place] / appearance(f) : 0;
            for (std::size_t k = 0; k < scope.size(); ++k) {
                const std::int64_t edge = graph_.scope_ptr[f] + static_cast<std::int64_t>(k);
                a += totals_[graph_.value_ptr[scope[k]] + at_[k]];
                if (scope.size() > 1) a -= lambda_[plan_.message_ptr[edge] + at_[k]];
            }
            changes[place] = a;
            mean += beliefs_[place] > 0 ? beliefs_[place] * a : 0;
        });
        for (std::int64_t i = graph_.table_ptr[f]; i < graph_.table_ptr[f + 1]; ++i)
            changes[i] = beliefs_[i] > 0 ? beliefs_[i] * (changes[i] - mean) : 0;
    }
    return solved;
}

}  // namespace crfkit
