// Losses, steps along single sequences and mistakes for any structure that is given by its parts (parts.hpp).
// Everything is asked of the path engine, in double precision: plain and exact. A structure that has a faster
// backend for whole data sets keeps it, and takes PartSequences and PartMistakes from here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "paths/engine.hpp"
#include "training/data_loss.hpp"
#include "training/mistakes.hpp"
#include "training/parts.hpp"
#include "training/sequence_loss.hpp"

namespace crfkit {

// The scores of the factors of one sequence, F w, given to its parts: A F w.
struct PartScores {
    // weights: what the ids of factors count in.
    void set(const Parts& parts, const double* weights);
    ScoredArrayGraph graph(const Parts& parts) const { return {parts, arcs, nodes}; }

    std::vector<double> factors, nodes, arcs;  // [factors], [nodes], [arcs]
};

// What is left of a sequence when only allowed nodes and arcs are, and of these only what START leads to.
class AllowedParts {
  public:
    void find(const Parts& parts);
    ScoredArrayGraph graph(const PartScores& scores) const;
    // Whether START leads to END.
    bool possible() const { return shape_.in_ptr[nodes.size() - 1] < shape_.in_ptr[nodes.size()]; }

    // [nodes], [arcs] their numbers among all parts.
    std::vector<std::int64_t> nodes, arcs;

  private:
    PathShape shape_;
    std::vector<std::int64_t> place_;  // [all nodes] number here, −1: not here
};

// Residuals: r, one for each factor. The weights come in the order in which the factors name them first.
class PartSequence final : public SequenceLoss {
  public:
    explicit PartSequence(const PartSource& source);

    void load(std::int64_t n) override;
    std::int64_t n_residuals() const override { return parts_.factors.size(); }
    double differentiate(const double* weights, double* residuals) override {
        return differentiate(weights, nullptr, residuals);
    }
    // With a direction of the weights, the residuals are how r changes along it.
    double differentiate(const double* weights, const double* direction, double* residuals);
    void gradient(const double* residuals, double* gradient) override;

  private:
    double add_marginals(const AllowedParts* some, const PartScores* moves, double weight, double* residuals);

    const PartSource& source_;
    std::unique_ptr<PartReader> reader_;
    Parts parts_;  // weights of factors counted among those of the sequence
    AllowedParts allowed_;
    PartScores scores_, moves_;
    PathEngine engine_;
    double weight_ = 0;
    std::vector<std::int32_t> place_;  // [D] of a weight among those of the sequence, −1: none
};

class PartSequences final : public SequenceSource {
  public:
    // The source must outlive it.
    explicit PartSequences(const PartSource& source) : source_(source) {}

    std::int64_t n_sequences() const override { return source_.n_sequences(); }
    std::int64_t n_slots() const override { return source_.n_weights; }
    bool slots_are_weights() const override { return true; }
    void pack(const double* w, double, double* slots) const override { std::copy_n(w, n_slots(), slots); }
    void unpack(const double* slots, double* w) const override { std::copy_n(slots, n_slots(), w); }
    void each_slot_range(const std::function<void(SlotRange)>& function) const override {
        for (std::int64_t d = 0; d < n_slots(); ++d) function({d, d + 1});
    }
    std::unique_ptr<SequenceLoss> open() const override { return std::make_unique<PartSequence>(source_); }

  private:
    const PartSource& source_;
};

// Viterbi over all paths against Viterbi over the allowed ones. An output is wrong at the levels where it
// says something else than the right one.
class PartMistakes final : public Mistakes {
  public:
    // Source and weights w [D] must outlive it.
    PartMistakes(const PartSource& source, const double* w)
        : source_(source), reader_(source.open()), w_(w) {}

    std::int64_t n_sequences() const override { return source_.n_sequences(); }
    double weight(std::int64_t n) const override { return source_.weights[n]; }
    void read_weights() override {}
    std::int64_t find(std::int64_t n, Difference& difference) override;
    void read_changes(const Difference&) override {}

  private:
    // A path as what it says at each level, and how often it has each factor, `sign` times.
    void walk(const ScoredArrayGraph& graph, const AllowedParts* some, double sign,
              std::vector<std::int32_t>& labels);

    const PartSource& source_;
    std::unique_ptr<PartReader> reader_;
    const double* w_;
    Parts parts_;
    AllowedParts allowed_;
    PartScores scores_;
    std::vector<double> best_, counts_;            // [nodes] for Viterbi; [factors]
    std::vector<std::int32_t> right_, predicted_;  // [levels] −1: nothing is said
    bool is_allowed_ = true;                       // whether all parts of the path walked last are allowed
};

// The loss of a structure that has no faster backend.
class PartLoss final : public DataLoss {
  public:
    PartLoss(std::shared_ptr<const PartSource> source, int n_threads)
        : DataLoss(source->n_weights, source->n_sequences(), n_threads),
          source_(std::move(source)),
          sequences_(*source_) {}

    double evaluate(const double* w, double* gradient) override { return sum(w, nullptr, gradient); }
    void hessian_vector(const double* w, const double* v, double* out) override { sum(w, v, out); }
    const SequenceSource& sequences() override { return sequences_; }
    std::unique_ptr<Mistakes> mistakes(const double* w) override {
        return std::make_unique<PartMistakes>(*source_, w);
    }

  private:
    double sum(const double* w, const double* v, double* out) const;

    std::shared_ptr<const PartSource> source_;
    PartSequences sequences_;
};

}  // namespace crfkit
