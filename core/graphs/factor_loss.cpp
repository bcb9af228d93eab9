#include "graphs/factor_loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "base/interruption.hpp"
#include "base/threads.hpp"
#include "graphs/assignment_search.hpp"
#include "training/sequence_sums.hpp"

namespace crfkit {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

// Whether log Z is that of messages.
bool by_messages(Criterion criterion) {
    return criterion == Criterion::belief_propagation || criterion == Criterion::tree_reweighted;
}

// The decoded assignment against the right one: where the annotation is not complete, the best one that it
// allows.
class FactorMistakes final : public Mistakes {
  public:
    FactorMistakes(const FactorSource& source, const double* w)
        : source_(source), reader_(source.data), w_(w), sums_(source.data.known.size()) {}

    std::int64_t n_sequences() const override { return source_.data.n_graphs(); }
    double weight(std::int64_t n) const override { return source_.data.weights[n]; }
    void read_weights() override {}
    void read_changes(const Difference&) override {}

    std::int64_t find(std::int64_t n, Difference& difference) override {
        reader_.load(n);
        const GraphShape& shape = reader_.shape();
        const FactorGraph& graph = shape.graph;
        std::unique_ptr<GraphSums>& sums = sums_[source_.data.shapes[n]];
        if (!sums) sums = source_.open_sums(source_.data.shapes[n]);
        scores_ = shape.fixed;
        reader_.add_all_scores(w_, scores_.data());
        predicted_.resize(static_cast<std::size_t>(graph.n_variables()));
        right_.resize(predicted_.size());
        decode(*sums, predicted_);
        const auto allowed = reader_.allowed();
        std::int64_t n_wrong = 0;
        for (std::int64_t v = 0; v < shape.n_variables; ++v)
            n_wrong += !allowed[graph.value_ptr[v] + predicted_[v]];
        if (n_wrong == 0) return 0;
        for (std::int64_t value = 0; value < graph.value_ptr[shape.n_variables]; ++value)
            if (!allowed[value]) scores_[value] = kImpossible;
        decode(*sums, right_);
        residuals_.assign(scores_.size(), 0.0);
        count(graph, right_, 1);
        count(graph, predicted_, -1);
        reader_.add_difference(residuals_.data(), difference);
        return n_wrong;
    }

  private:
    void decode(GraphSums& sums, std::vector<std::int32_t>& assignment) {
        if (!std::isfinite(sums.decode(scores_.data(), assignment.data())))
            throw std::overflow_error(
                "the scores of a graph left the range of numbers, expected smaller values of features");
    }
    void count(const FactorGraph& graph, const std::vector<std::int32_t>& assignment, double sign) {
        for (std::int64_t f = 0; f < graph.n_tables(); ++f) {
            std::int64_t place = 0;
            for (const std::int32_t v : graph.scope(f))
                place = place * graph.cardinalities[v] + assignment[v];
            residuals_[graph.table_ptr[f] + place] += sign;
        }
    }

    const FactorSource& source_;
    FactorReader reader_;
    const double* w_;
    std::vector<std::unique_ptr<GraphSums>> sums_;  // [shapes]
    std::vector<double> scores_, residuals_;
    std::vector<std::int32_t> predicted_, right_;
};

}  // namespace

FactorSource::FactorSource(std::shared_ptr<const FactorData> graphs, Criterion kind,
                           std::int64_t memory_limit, int n_threads)
    : owned(std::move(graphs)), data(*owned), criterion(kind), memory_limit_(memory_limit) {
    if (criterion == Criterion::likelihood || by_messages(criterion)) plan(n_threads);
    if (criterion != Criterion::pseudo_likelihood) return;
    GraphAnnotation gold;
    for (std::int64_t n = 0; n < data.n_graphs(); ++n) {
        gold.read(data.shape(n), data.allowed_of(n));
        if (!gold.complete)
            throw std::invalid_argument("pseudo-likelihood of graph " + std::to_string(n) +
                                        ", which has unknown labels or constraints");
    }
}

void FactorSource::plan(int n_threads) {
    const std::size_t n = data.known.size();
    if (trees_.size() == n || messages_.size() == n) return;
    if (by_messages(criterion)) {
        std::vector<std::unique_ptr<BeliefPropagation>> found(n);
        parallel_for(static_cast<std::int64_t>(n), n_threads, [&](std::int64_t i, int) {
            found[i] = std::make_unique<BeliefPropagation>(data.known[i]->graph,
                                                           criterion == Criterion::tree_reweighted);
        });
        messages_ = std::move(found);
        return;
    }
    std::vector<std::unique_ptr<JunctionTree>> found(n);
    parallel_for(static_cast<std::int64_t>(n), n_threads, [&](std::int64_t i, int) {
        check_interruption();
        const GraphShape& shape = *data.known[i];
        found[i] = std::make_unique<JunctionTree>(shape.graph, std::span<const std::uint8_t>{}, shape.fixed,
                                                  static_cast<double>(memory_limit_));
    });
    for (std::size_t i = 0; i < n; ++i) {
        if (found[i]->complete() && found[i]->bytes() <= static_cast<double>(memory_limit_)) continue;
        const std::int64_t graph =
            std::find(data.shapes.begin(), data.shapes.end(), static_cast<std::int64_t>(i)) -
            data.shapes.begin();
        std::vector<std::int32_t> clique;  // without variables that were added for factors
        for (const std::int32_t free : found[i]->order.largest_clique)
            if (found[i]->conditioned.variable[free] < data.known[i]->n_variables)
                clique.push_back(found[i]->conditioned.variable[free]);
        throw GraphTooLarge("exact inference needs more than the limit of " + std::to_string(memory_limit_) +
                                " bytes: the largest clique has " +
                                std::to_string(found[i]->order.largest_clique.size()) + " variables",
                            graph, std::move(clique));
    }
    trees_ = std::move(found);
}

void FactorSource::check_possible(int n_threads) const {
    std::vector<std::unique_ptr<MessagePlan>> plans(data.known.size());  // of shapes that exclude something
    parallel_for(static_cast<std::int64_t>(plans.size()), n_threads, [&](std::int64_t i, int) {
        const auto& fixed = data.known[i]->fixed;
        if (std::find(fixed.begin(), fixed.end(), kImpossible) != fixed.end())
            plans[i] = std::make_unique<MessagePlan>(data.known[i]->graph);
    });
    std::vector<char> possible(static_cast<std::size_t>(data.n_graphs()), 1);
    parallel_for(data.n_graphs(), n_threads, [&](std::int64_t n, int) {
        check_interruption();
        const MessagePlan* plan = plans[data.shapes[n]].get();
        if (!plan) return;
        const auto allowed = data.allowed_of(n);
        const std::unique_ptr<bool[]> mask(new bool[allowed.size()]);
        std::copy(allowed.begin(), allowed.end(), mask.get());
        try {
            possible[n] =
                find_assignment(*plan, data.shape(n).fixed, {mask.get(), allowed.size()}, {}).has_value();
        } catch (const SearchSpent&) {  // one may exist
        }
    });
    const auto none = std::find(possible.begin(), possible.end(), 0);
    if (none != possible.end())
        throw GraphImpossible("constraints exclude every assignment", none - possible.begin(), {});
}

std::unique_ptr<GraphSums> FactorSource::open_sums(std::int64_t shape) const {
    const FactorGraph& graph = data.known[shape]->graph;
    if (by_messages(criterion)) return belief_sums(graph, *messages_[shape]);
    return exact_sums(graph, *trees_[shape]);
}

FactorSequence::FactorSequence(const FactorSource& source)
    : source_(source),
      reader_(source.data),
      sums_(source.data.known.size()),
      criteria_(source.data.known.size()) {}

void FactorSequence::load(std::int64_t n) {
    clear();
    reader_.load(n);
    shape_ = source_.data.shapes[n];
    const GraphShape& shape = reader_.shape();
    gold_.read(shape, reader_.allowed());
    for (const std::int64_t f : reader_.features())
        touch(source_.data.features.weight_ptr[f], source_.data.features.weight_ptr[f + 1]);
    if (criteria_[shape_]) return;
    switch (source_.criterion) {
        case Criterion::pseudo_likelihood:
            criteria_[shape_] = pseudo_likelihood_criterion(shape);
            break;
        case Criterion::piecewise:
            criteria_[shape_] = piecewise_criterion(shape);
            break;
        default:
            sums_[shape_] = source_.open_sums(shape_);
            criteria_[shape_] = likelihood_criterion(shape, *sums_[shape_]);
    }
}

double FactorSequence::differentiate(const double* weights, const double* direction, double* residuals) {
    scores_ = reader_.shape().fixed;
    reader_.add_scores(weights, scores_.data());
    if (direction) {
        moves_.assign(scores_.size(), 0.0);
        reader_.add_scores(direction, moves_.data());
    }
    const double value =
        criteria_[shape_]->evaluate(gold_, scores_.data(), direction ? moves_.data() : nullptr, residuals);
    const double weight = reader_.weight();
    for (std::int64_t i = 0; i < n_residuals(); ++i) residuals[i] *= weight;
    return weight * value;
}

void FactorSequence::gradient(const double* residuals, double* gradient) {
    std::fill_n(gradient, n_weights(), 0.0);
    reader_.add_gradient(residuals, gradient);
}

void FactorSequences::each_slot_range(const std::function<void(SlotRange)>& function) const {
    const auto& ptr = source_.data.features.weight_ptr;
    for (std::size_t f = 0; f + 1 < ptr.size(); ++f)
        if (ptr[f] < ptr[f + 1]) function({ptr[f], ptr[f + 1]});
}

double FactorLoss::sum(const double* w, const double* v, double* out) const {
    return sum_sequences(n_sequences, n_weights, n_threads, w, v, out,
                         [&] { return std::make_unique<FactorSequence>(*source_); });
}

std::unique_ptr<Mistakes> FactorLoss::mistakes(const double* w) {
    source_->plan(n_threads);
    return std::make_unique<FactorMistakes>(*source_, w);
}

}  // namespace crfkit
