#include "graphs/mean_field.hpp"

#include <algorithm>
#include <cmath>

#include "base/interruption.hpp"
#include "graphs/assignment_search.hpp"
#include "graphs/configurations.hpp"
#include "graphs/message_domain.hpp"

namespace crfkit {

namespace {

class MeanField {
  public:
    MeanField(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed)
        : plan_(plan),
          graph_(plan.graph),
          scores_(scores),
          own_(own_scores(plan.graph, scores, allowed)),
          q_(own_.size()),
          at_(largest_arity(plan.graph)) {}

    void start_at(std::span<const std::int32_t> assignment) {
        std::fill(q_.begin(), q_.end(), 0.0);
        for (std::int64_t v = 0; v < graph_.n_variables(); ++v) q_[graph_.value_ptr[v] + assignment[v]] = 1;
    }
    void start_from_own() {
        for (std::int64_t v = 0; v < graph_.n_variables(); ++v) {
            double* q = q_.data() + graph_.value_ptr[v];
            std::copy_n(own_.data() + graph_.value_ptr[v], graph_.cardinalities[v], q);
            soften(q, graph_.cardinalities[v]);
        }
    }

    // The best q of one variable for the others, into `out`.
    void best(std::int64_t v, std::vector<double>& out) {
        const auto begin = own_.begin() + graph_.value_ptr[v];
        out.assign(begin, begin + graph_.cardinalities[v]);
        for (const std::int64_t edge : plan_.messages_to(v)) {
            const std::int64_t f = plan_.table_of[edge];
            const auto scope = graph_.scope(f);
            const auto own_place = static_cast<std::size_t>(edge - graph_.scope_ptr[f]);
            each_configuration(graph_, f, at_, [&](std::int64_t place) {
                double weight = 1;
                for (std::size_t k = 0; k < scope.size(); ++k)
                    if (k != own_place) weight *= q_[graph_.value_ptr[scope[k]] + at_[k]];
                if (weight > 0) out[at_[own_place]] += weight * scores_[place];
            });
            pace_.work((graph_.table_ptr[f + 1] - graph_.table_ptr[f]) * 2);
        }
        soften(out.data(), graph_.cardinalities[v]);
    }

    double change(std::int64_t v, const std::vector<double>& fresh) const {
        double largest = 0;
        for (std::size_t x = 0; x < fresh.size(); ++x)
            largest = std::max(largest, std::abs(fresh[x] - q_[graph_.value_ptr[v] + x]));
        return largest;
    }
    void set(std::int64_t v, const std::vector<double>& fresh) {
        std::copy(fresh.begin(), fresh.end(), q_.begin() + graph_.value_ptr[v]);
    }

    // Σ_f E_q[score_f] + Σ_i H(q_i); the probabilities of configurations go to of_tables if given.
    double bound(double* of_tables = nullptr) {
        double sum = 0;
        for (std::size_t i = 0; i < q_.size(); ++i)
            if (q_[i] > 0) sum -= q_[i] * std::log(q_[i]);
        for (std::int64_t f = 0; f < graph_.n_tables(); ++f) {
            const auto scope = graph_.scope(f);
            each_configuration(graph_, f, at_, [&](std::int64_t place) {
                double weight = 1;
                for (std::size_t k = 0; k < scope.size(); ++k)
                    weight *= q_[graph_.value_ptr[scope[k]] + at_[k]];
                if (weight > 0) sum += weight * scores_[place];
                if (of_tables) of_tables[place] = weight;
            });
            pace_.work(graph_.table_ptr[f + 1] - graph_.table_ptr[f]);
        }
        return sum;
    }
    const std::vector<double>& q() const { return q_; }

  private:
    static void soften(double* x, std::int64_t n) {
        const double largest = *std::max_element(x, x + n);
        if (largest == kMinusInfinity) throw Contradiction{};
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - largest);
        for (std::int64_t i = 0; i < n; ++i) x[i] /= sum;
    }

    const MessagePlan& plan_;
    const FactorGraph& graph_;
    std::span<const double> scores_;
    std::vector<double> own_, q_;
    std::vector<std::int32_t> at_;
    Pace pace_;
};

}  // namespace

MeanFieldResult mean_field(const MessagePlan& plan, std::span<const double> scores,
                           std::span<const bool> allowed, double tolerance, std::int64_t max_iterations) {
    MeanFieldResult result;
    MeanField field(plan, scores, allowed);
    bool serves = true;
    try {
        field.start_from_own();
    } catch (const Contradiction&) {
        serves = false;
    }
    if (!serves || field.bound() == kMinusInfinity) {
        auto found = find_assignment(plan, scores, allowed, field.q());
        if (!found) {
            result.possible = false;
            return result;
        }
        improve(plan, scores, allowed, *found);
        field.start_at(*found);
    }
    std::vector<double> fresh;
    double last = kMinusInfinity;
    for (;;) {
        result.lower_bound = field.bound();
        if (result.iterations > 0) result.bounds.push_back(result.lower_bound);
        const bool still = result.iterations > 0 && result.lower_bound - last < tolerance;
        if (still || result.iterations >= max_iterations) {
            result.residual = 0;
            for (const std::int64_t v : plan.variables) {
                field.best(v, fresh);
                result.residual = std::max(result.residual, field.change(v, fresh));
            }
            result.converged = result.residual < tolerance;
            if (result.converged || result.iterations >= max_iterations) break;
        }
        last = result.lower_bound;
        for (const std::int64_t v : plan.variables) {
            field.best(v, fresh);
            field.set(v, fresh);
        }
        ++result.iterations;
    }
    result.of_variables = field.q();
    result.of_tables.resize(scores.size());
    result.lower_bound = field.bound(result.of_tables.data());
    return result;
}

}  // namespace crfkit
