#include "graphs/criteria.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace crfkit {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

// Numbers x_0, …, x_{n−1} as a distribution: p_i = exp(x_i) / Σ_j exp(x_j), in place. Returns log Σ exp.
double normalise(std::vector<double>& x) {
    const double highest = *std::max_element(x.begin(), x.end());
    if (highest == kImpossible) return kImpossible;
    double sum = 0;
    for (double& number : x) sum += number = std::exp(number - highest);
    for (double& number : x) number /= sum;
    return highest + std::log(sum);
}

// How p = softmax(x) changes when x moves along m: p_i (m_i − Σ_j p_j m_j), in place of m.
void move_distribution(const std::vector<double>& p, std::vector<double>& m) {
    double mean = 0;
    for (std::size_t i = 0; i < p.size(); ++i) mean += p[i] * m[i];
    for (std::size_t i = 0; i < p.size(); ++i) m[i] = p[i] * (m[i] - mean);
}

class Likelihood final : public GraphCriterion {
  public:
    Likelihood(const GraphShape& shape, GraphSums& sums) : shape_(shape), sums_(sums) {}

    // Z_G is Z where values that are not allowed score −inf, in the table of their variable alone.
    double evaluate(const GraphAnnotation& gold, const double* scores, const double* moves,
                    double* residuals) override {
        const std::size_t n = static_cast<std::size_t>(shape_.graph.n_scores());
        const double log_partition = ask(scores, moves, residuals);
        if (gold.complete) {
            double score = 0;
            for (const std::int64_t entry : gold.entries) {
                score += scores[entry];
                if (!moves) residuals[entry] -= 1;
            }
            return log_partition - score;
        }
        masked_.assign(scores, scores + n);
        marginals_.resize(n);
        for (std::int64_t value = 0; value < shape_.graph.value_ptr[shape_.n_variables]; ++value)
            if (!gold.allowed[value]) masked_[value] = kImpossible;
        const double log_gold = ask(masked_.data(), moves, marginals_.data());
        for (std::size_t i = 0; i < n; ++i) residuals[i] -= marginals_[i];
        return log_partition - log_gold;
    }

  private:
    double ask(const double* scores, const double* moves, double* numbers) {
        return moves ? sums_.hessian_vector(scores, moves, numbers) : sums_.marginals(scores, numbers);
    }

    const GraphShape& shape_;
    GraphSums& sums_;
    std::vector<double> masked_, marginals_;
};

class PseudoLikelihood final : public GraphCriterion {
  public:
    explicit PseudoLikelihood(const GraphShape& shape) : shape_(shape) {
        const FactorGraph& graph = shape.graph;
        tables_.resize(static_cast<std::size_t>(graph.n_variables()));
        for (std::int64_t f = 0; f < graph.n_tables(); ++f) {
            std::int64_t stride = 1;
            const auto scope = graph.scope(f);
            for (std::size_t i = scope.size(); i-- > 0; stride *= graph.cardinalities[scope[i]])
                tables_[scope[i]].push_back({f, stride});
        }
    }

    double evaluate(const GraphAnnotation& gold, const double* scores, const double* moves,
                    double* residuals) override {
        if (!gold.complete)
            throw std::invalid_argument("pseudo-likelihood of a graph that is not labelled completely");
        const FactorGraph& graph = shape_.graph;
        std::fill_n(residuals, graph.n_scores(), 0.0);
        double value = 0;
        for (std::int64_t v = 0; v < graph.n_variables(); ++v) {
            const std::int32_t right = gold.assignment[v];
            // the entry of each table that has value x here and the right values elsewhere
            const auto entry = [&](const Neighbour& near, std::int64_t x) {
                return gold.entries[near.table] + (x - right) * near.stride;
            };
            const auto sum_into = [&](const double* of, std::vector<double>& sums) {
                sums.assign(static_cast<std::size_t>(graph.cardinalities[v]), 0.0);
                for (const Neighbour& near : tables_[v])
                    for (std::size_t x = 0; x < sums.size(); ++x)
                        sums[x] += of[entry(near, static_cast<std::int64_t>(x))];
            };
            sum_into(scores, p_);
            const double score = p_[right];
            value += normalise(p_) - score;
            if (moves) {
                sum_into(moves, moved_);
                move_distribution(p_, moved_);
            } else {
                moved_ = p_;
                moved_[right] -= 1;
            }
            for (const Neighbour& near : tables_[v])
                for (std::size_t x = 0; x < moved_.size(); ++x)
                    residuals[entry(near, static_cast<std::int64_t>(x))] += moved_[x];
        }
        return value;
    }

  private:
    struct Neighbour {
        std::int64_t table, stride;
    };

    const GraphShape& shape_;
    std::vector<std::vector<Neighbour>> tables_;  // [V] of each variable
    std::vector<double> p_, moved_;
};

class Piecewise final : public GraphCriterion {
  public:
    explicit Piecewise(const GraphShape& shape) : shape_(shape) {}

    double evaluate(const GraphAnnotation& gold, const double* scores, const double* moves,
                    double* residuals) override {
        const FactorGraph& graph = shape_.graph;
        double value = 0;
        std::fill_n(residuals, graph.n_scores(), 0.0);
        for (std::int64_t f = shape_.n_variables; f < graph.n_tables(); ++f) {
            const std::int64_t begin = graph.table_ptr[f], size = graph.table_ptr[f + 1] - begin;
            const auto add = [&](double sign, bool some) {
                p_.assign(scores + begin, scores + begin + size);
                if (some) exclude(gold, f);
                const double log_partition = normalise(p_);
                if (moves) {
                    moved_.assign(moves + begin, moves + begin + size);
                    move_distribution(p_, moved_);
                }
                const std::vector<double>& numbers = moves ? moved_ : p_;
                for (std::int64_t i = 0; i < size; ++i) residuals[begin + i] += sign * numbers[i];
                return log_partition;
            };
            value += add(1, false);
            value -= add(-1, true);
        }
        return value;
    }

  private:
    // −inf for the configurations of a table that an annotation does not allow.
    void exclude(const GraphAnnotation& gold, std::int64_t f) {
        const FactorGraph& graph = shape_.graph;
        const auto scope = graph.scope(f);
        for (std::size_t i = 0; i < p_.size(); ++i) {
            std::size_t rest = i;
            for (std::size_t k = scope.size(); k-- > 0;) {
                const std::size_t count = static_cast<std::size_t>(graph.cardinalities[scope[k]]);
                if (!gold.allowed[graph.value_ptr[scope[k]] + rest % count]) p_[i] = kImpossible;
                rest /= count;
            }
        }
    }

    const GraphShape& shape_;
    std::vector<double> p_, moved_;
};

}  // namespace

void GraphAnnotation::read(const GraphShape& shape, std::span<const std::uint8_t> mask) {
    const FactorGraph& graph = shape.graph;
    allowed = mask;
    assignment.assign(static_cast<std::size_t>(graph.n_variables()), -1);
    complete = shape.n_variables == graph.n_variables();
    for (std::int64_t v = 0; v < graph.n_variables(); ++v) {
        const auto values = mask.subspan(static_cast<std::size_t>(graph.value_ptr[v]),
                                         static_cast<std::size_t>(graph.cardinalities[v]));
        if (std::count(values.begin(), values.end(), 0) + 1 == graph.cardinalities[v])
            assignment[v] = static_cast<std::int32_t>(
                std::find_if(values.begin(), values.end(), [](auto is) { return is != 0; }) - values.begin());
        else
            complete = false;
    }
    entries.clear();
    if (!complete) return;
    for (std::int64_t f = 0; f < graph.n_tables(); ++f) {
        std::int64_t place = 0;
        for (const std::int32_t v : graph.scope(f)) place = place * graph.cardinalities[v] + assignment[v];
        entries.push_back(graph.table_ptr[f] + place);
    }
}

std::unique_ptr<GraphCriterion> likelihood_criterion(const GraphShape& shape, GraphSums& sums) {
    return std::make_unique<Likelihood>(shape, sums);
}
std::unique_ptr<GraphCriterion> pseudo_likelihood_criterion(const GraphShape& shape) {
    return std::make_unique<PseudoLikelihood>(shape);
}
std::unique_ptr<GraphCriterion> piecewise_criterion(const GraphShape& shape) {
    return std::make_unique<Piecewise>(shape);
}

}  // namespace crfkit
