#include "graphs/graph_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "graphs/belief_derivative.hpp"
#include "graphs/junction_tree_max.hpp"
#include "graphs/junction_tree_sums.hpp"
#include "graphs/map_dual.hpp"

namespace crfkit {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();
constexpr MapOptions kBetter{100, 1e-9, 4096,
                             200};          // the search for better assignments than those of messages
constexpr double kReweightedDamping = 0.3;  // reweighted messages may oscillate without

class ExactSums final : public GraphSums {
  public:
    ExactSums(const FactorGraph& graph, const JunctionTree& tree)
        : graph_(graph), tree_(tree), sums_(tree), of_values_(static_cast<std::size_t>(tree.value_count)) {}

    double marginals(const double* scores, double* marginals) override {
        return sums_.marginals(all(scores), of_values_.data(), marginals);
    }
    double hessian_vector(const double* scores, const double* direction, double* changes) override {
        return sums_.hessian_vector(all(scores), all(direction), of_values_.data(), changes);
    }
    double decode(const double* scores, std::int32_t* assignment) override {
        const auto found = k_best_assignments(graph_, tree_, all(scores), 1);
        if (found.empty()) return kImpossible;
        std::copy(found[0].values.begin(), found[0].values.end(), assignment);
        return found[0].score;
    }

  private:
    std::span<const double> all(const double* scores) const {
        return {scores, static_cast<std::size_t>(graph_.n_scores())};
    }

    const FactorGraph& graph_;
    const JunctionTree& tree_;
    JunctionTreeSums sums_;
    std::vector<double> of_values_;
};

class BeliefSums final : public GraphSums {
  public:
    BeliefSums(const FactorGraph& graph, const BeliefPropagation& messages)
        : graph_(graph), messages_(messages) {}

    double marginals(const double* scores, double* marginals) override {
        const Beliefs found = run(scores, false);
        if (!found.possible) return kImpossible;
        std::copy(found.of_tables.begin(), found.of_tables.end(), marginals);
        return found.log_partition;
    }
    // At the fixed point of the messages; where they have none, the same for where they are.
    double hessian_vector(const double* scores, const double* direction, double* changes) override {
        const Beliefs found = run(scores, false, true);
        if (!found.possible) return kImpossible;
        BeliefDerivative derivative(messages_.plan(), all(scores), found.log_messages, messages_.appearance(),
                                    found.damping);
        if (!derivative.along(all(direction), changes)) differences(scores, direction, changes);
        return found.log_partition;
    }
    double decode(const double* scores, std::int32_t* assignment) override {
        const Beliefs found = run(scores, true);
        if (!found.possible) return kImpossible;
        // messages with cycles miss better assignments, and may choose values that exclude each other
        const MapSolution better = solve_map(messages_.plan(), all(scores), {}, kBetter, found.best);
        if (!better.possible || better.best.empty()) return kImpossible;
        std::copy(better.best.begin(), better.best.end(), assignment);
        return better.score;
    }

  private:
    // (marginals(scores + h direction) − marginals(scores − h direction)) / 2h
    void differences(const double* scores, const double* direction, double* changes) {
        const std::size_t n = static_cast<std::size_t>(graph_.n_scores());
        double largest = 0;
        for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(direction[i]));
        const double step = largest > 0 ? 1e-4 / largest : 1;
        std::vector<double> moved(n), before(n);
        const auto at = [&](double h, double* out) {
            for (std::size_t i = 0; i < n; ++i) moved[i] = scores[i] + h * direction[i];
            return marginals(moved.data(), out);
        };
        at(-step, before.data());
        at(step, changes);
        for (std::size_t i = 0; i < n; ++i) changes[i] = (changes[i] - before[i]) / (2 * step);
    }
    Beliefs run(const double* scores, bool maximise, bool keep_messages = false) const {
        MessageOptions options;
        options.maximise = maximise;
        options.keep_messages = keep_messages;
        options.tolerance = maximise ? 1e-6 : messages_.is_reweighted() ? 1e-8 : 1e-10;
        if (messages_.is_reweighted()) options.damping = kReweightedDamping;
        return messages_.run(all(scores), {}, options);
    }
    std::span<const double> all(const double* scores) const {
        return {scores, static_cast<std::size_t>(graph_.n_scores())};
    }

    const FactorGraph& graph_;
    const BeliefPropagation& messages_;
};

}  // namespace

std::unique_ptr<GraphSums> exact_sums(const FactorGraph& graph, const JunctionTree& tree) {
    return std::make_unique<ExactSums>(graph, tree);
}
std::unique_ptr<GraphSums> belief_sums(const FactorGraph& graph, const BeliefPropagation& messages) {
    return std::make_unique<BeliefSums>(graph, messages);
}

}  // namespace crfkit
