// Data sets of factor graphs whose tables are scored by features: weights that are tied over many tables.
//
//   score_f(y_f) = fixed_f(y_f) + Σ over features of f, value · Σ over entries (configuration = y_f) of the
//                  feature, w[weight]
//
// A feature has a list of entries (configuration, weight). Its weights are a range of w of its own; several
// configurations may share one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graphs/factor_graph.hpp"
#include "training/mistakes.hpp"

namespace crfkit {

// Which configurations each feature scores, by which weight.
struct FactorFeatures {
    std::vector<std::int64_t> entry_ptr;       // [features + 1]
    std::vector<std::int64_t> configurations;  // of the entries
    std::vector<std::int64_t> weights;         // of the entries, in w
    std::vector<std::int64_t> weight_ptr;      // [features + 1] the range of weights of each feature

    std::int64_t n_features() const { return static_cast<std::int64_t>(entry_ptr.size()) - 1; }
    std::int64_t n_weights() const { return weight_ptr.back(); }
    // Throws std::invalid_argument where lists do not fit together.
    void check() const;
};

// A graph that several inputs may have: which variables and tables, and what tables score without features.
// The first tables are those of single variables, 0, 1, …, n_variables − 1: there allowed values are marked.
struct GraphShape {
    FactorGraph graph;
    std::int64_t n_variables;   // those of the input; the rest were added to write factors as tables
    std::vector<double> fixed;  // [n_scores] 0, or −inf where a configuration is impossible
};

struct FactorData {
    // Throws std::invalid_argument where lists do not fit together.
    void check() const;
    std::int64_t n_graphs() const { return static_cast<std::int64_t>(shapes.size()); }
    const GraphShape& shape(std::int64_t n) const { return *known[shapes[n]]; }
    // Of graph n: which values its annotation allows, variable by variable.
    std::span<const std::uint8_t> allowed_of(std::int64_t n) const {
        return std::span(allowed).subspan(static_cast<std::size_t>(allowed_ptr[n]),
                                          static_cast<std::size_t>(allowed_ptr[n + 1] - allowed_ptr[n]));
    }

    FactorFeatures features;
    std::vector<std::shared_ptr<const GraphShape>> known;  // shapes that occur
    std::vector<std::int64_t> shapes;                      // [N] of each graph
    std::vector<std::int64_t> first_table;                 // [N + 1] of each graph among all tables
    std::vector<std::int64_t> feature_ptr;                 // [tables + 1]
    std::vector<std::int64_t> feature_ids;
    std::vector<double> values;
    std::vector<std::int64_t> allowed_ptr;  // [N + 1]
    std::vector<std::uint8_t> allowed;
    std::vector<double> weights;  // [N] how often each graph counts
};

// Goes to one graph after the other and knows which weights it touches: those of its features, each once.
class FactorReader {
  public:
    explicit FactorReader(const FactorData& data)
        : data_(data), place_(static_cast<std::size_t>(data.features.n_features()), -1) {}

    void load(std::int64_t n);
    const GraphShape& shape() const { return data_.shape(number_); }
    std::span<const std::uint8_t> allowed() const { return data_.allowed_of(number_); }
    double weight() const { return data_.weights[number_]; }
    // The features of the graph, in the order in which its tables name them first.
    const std::vector<std::int64_t>& features() const { return features_; }

    // Adds Φ w to scores [n_scores]. weights: those of features(), one range after the other.
    void add_scores(const double* weights, double* scores) const;
    // The same where weights are all of w [D].
    void add_all_scores(const double* w, double* scores) const;
    // gradient += Φᵀ residuals, for the weights of features().
    void add_gradient(const double* residuals, double* gradient) const;
    // difference += Φᵀ residuals, for all of w.
    void add_difference(const double* residuals, Difference& difference) const;

  private:
    // Calls function(score, weight among those of the feature, feature, value) for all entries of all tables.
    template <class Function>
    void each_entry(const Function& function) const;

    const FactorData& data_;
    std::int64_t number_ = 0;
    std::vector<std::int64_t> features_;
    std::vector<std::int64_t>
        place_;  // [features] where its weights begin among those of the graph, −1: not here
};

}  // namespace crfkit
