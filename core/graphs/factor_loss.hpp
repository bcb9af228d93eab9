// The loss of a data set of factor graphs with tied weights (factor_data.hpp), by one of the criteria.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "graphs/criteria.hpp"
#include "graphs/factor_data.hpp"
#include "graphs/graph_sums.hpp"
#include "training/data_loss.hpp"

namespace crfkit {

enum class Criterion { likelihood, belief_propagation, tree_reweighted, pseudo_likelihood, piecewise };

// A graph that cannot be used: which one of the data, and variables of its input that are concerned.
struct GraphError : std::runtime_error {
    GraphError(const std::string& message, std::int64_t number, std::vector<std::int32_t> some)
        : std::runtime_error(message), graph(number), variables(std::move(some)) {}
    std::int64_t graph;
    std::vector<std::int32_t> variables;
};
struct GraphTooLarge : GraphError {
    using GraphError::GraphError;
};
struct GraphImpossible : GraphError {
    using GraphError::GraphError;
};

// Data and criterion, with what depends on the shape of a graph alone, found once.
class FactorSource {
  public:
    // memory_limit: bytes that exact inference on one graph may take.
    // Throws std::invalid_argument where an annotation does not suit the criterion, GraphTooLarge where exact
    // inference does not fit.
    FactorSource(std::shared_ptr<const FactorData> graphs, Criterion criterion, std::int64_t memory_limit,
                 int n_threads);
    FactorSource(const FactorSource&) = delete;
    FactorSource& operator=(const FactorSource&) = delete;

    // Plans inference for all shapes, where it was not needed so far. One thread at a time.
    void plan(int n_threads);
    // Throws GraphImpossible for a graph whose constraints exclude every assignment that its annotation
    // allows.
    void check_possible(int n_threads) const;
    // What answers for a shape, for one thread. Shapes must be planned.
    std::unique_ptr<GraphSums> open_sums(std::int64_t shape) const;

    const std::shared_ptr<const FactorData> owned;
    const FactorData& data;
    const Criterion criterion;

  private:
    const std::int64_t memory_limit_;
    std::vector<std::unique_ptr<JunctionTree>> trees_;          // [shapes]
    std::vector<std::unique_ptr<BeliefPropagation>> messages_;  // [shapes]
};

// One graph. Residuals: the derivatives by the scores of its tables.
class FactorSequence final : public SequenceLoss {
  public:
    explicit FactorSequence(const FactorSource& source);

    void load(std::int64_t n) override;
    std::int64_t n_residuals() const override { return reader_.shape().graph.n_scores(); }
    double differentiate(const double* weights, double* residuals) override {
        return differentiate(weights, nullptr, residuals);
    }
    double differentiate(const double* weights, const double* direction, double* residuals);
    void gradient(const double* residuals, double* gradient) override;

  private:
    const FactorSource& source_;
    FactorReader reader_;
    GraphAnnotation gold_;
    std::int64_t shape_ = 0;
    std::vector<std::unique_ptr<GraphSums>> sums_;           // [shapes] opened when first met
    std::vector<std::unique_ptr<GraphCriterion>> criteria_;  // [shapes]
    std::vector<double> scores_, moves_;
};

class FactorSequences final : public SequenceSource {
  public:
    // The source must outlive it.
    explicit FactorSequences(const FactorSource& source) : source_(source) {}

    std::int64_t n_sequences() const override { return source_.data.n_graphs(); }
    std::int64_t n_slots() const override { return source_.data.features.n_weights(); }
    void pack(const double* w, double, double* slots) const override { std::copy_n(w, n_slots(), slots); }
    void unpack(const double* slots, double* w) const override { std::copy_n(slots, n_slots(), w); }
    void each_slot_range(const std::function<void(SlotRange)>& function) const override;
    std::unique_ptr<SequenceLoss> open() const override { return std::make_unique<FactorSequence>(source_); }

  private:
    const FactorSource& source_;
};

class FactorLoss final : public DataLoss {
  public:
    FactorLoss(std::shared_ptr<FactorSource> source, int n_threads)
        : DataLoss(source->data.features.n_weights(), source->data.n_graphs(), n_threads),
          source_(std::move(source)),
          sequences_(*source_) {}

    double evaluate(const double* w, double* gradient) override { return sum(w, nullptr, gradient); }
    void hessian_vector(const double* w, const double* v, double* out) override { sum(w, v, out); }
    const SequenceSource& sequences() override { return sequences_; }
    std::unique_ptr<Mistakes> mistakes(const double* w) override;

  private:
    double sum(const double* w, const double* v, double* out) const;

    std::shared_ptr<FactorSource> source_;
    FactorSequences sequences_;
};

}  // namespace crfkit
