#include "graphs/factor_data.hpp"

#include <stdexcept>

namespace crfkit {
namespace {

void expect(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

// Offsets of lists: from 0 to `size`, never decreasing.
void check_ptr(const std::vector<std::int64_t>& ptr, std::size_t size, const char* message) {
    expect(!ptr.empty() && ptr.front() == 0 && ptr.back() == static_cast<std::int64_t>(size), message);
    for (std::size_t i = 1; i < ptr.size(); ++i) expect(ptr[i] >= ptr[i - 1], message);
}

}  // namespace

void FactorFeatures::check() const {
    check_ptr(entry_ptr, configurations.size(), "entries of features that do not add up");
    expect(weights.size() == configurations.size(), "configurations and weights of different numbers");
    expect(weight_ptr.size() == entry_ptr.size(), "features of different numbers");
    check_ptr(weight_ptr, static_cast<std::size_t>(weight_ptr.back()),
              "weights of features that do not add up");
    for (std::int64_t f = 0; f < n_features(); ++f)
        for (std::int64_t k = entry_ptr[f]; k < entry_ptr[f + 1]; ++k)
            expect(configurations[k] >= 0 && weights[k] >= weight_ptr[f] && weights[k] < weight_ptr[f + 1],
                   "an entry of a feature out of range");
}

void FactorData::check() const {
    features.check();
    const std::size_t n = shapes.size();
    expect(first_table.size() == n + 1 && allowed_ptr.size() == n + 1 && weights.size() == n,
           "graphs of different numbers");
    check_ptr(feature_ptr, feature_ids.size(), "features of tables that do not add up");
    expect(values.size() == feature_ids.size(), "features and values of different numbers");
    check_ptr(first_table, feature_ptr.size() - 1, "tables of graphs that do not add up");
    check_ptr(allowed_ptr, allowed.size(), "allowed values of graphs that do not add up");
    for (const auto& shape : known) {
        expect(static_cast<std::int64_t>(shape->fixed.size()) == shape->graph.n_scores(),
               "a graph that does not fit its scores");
        expect(shape->n_variables >= 0 && shape->n_variables <= shape->graph.n_variables() &&
                   shape->n_variables <= shape->graph.n_tables(),
               "a graph without tables of single variables");
        for (std::int64_t v = 0; v < shape->n_variables; ++v)
            expect(shape->graph.scope(v).size() == 1 && shape->graph.scope(v)[0] == v,
                   "a graph without tables of single variables");
    }
    for (std::size_t i = 0; i < n; ++i) {
        expect(shapes[i] >= 0 && shapes[i] < static_cast<std::int64_t>(known.size()), "an unknown graph");
        const FactorGraph& graph = known[shapes[i]]->graph;
        expect(first_table[i + 1] - first_table[i] == graph.n_tables(), "a graph with other tables");
        expect(allowed_ptr[i + 1] - allowed_ptr[i] == graph.value_ptr.back(), "a graph with other values");
        for (std::int64_t t = 0; t < graph.n_tables(); ++t) {
            const std::int64_t size = graph.table_ptr[t + 1] - graph.table_ptr[t];
            const std::int64_t table = first_table[i] + t;
            for (std::int64_t k = feature_ptr[table]; k < feature_ptr[table + 1]; ++k) {
                const std::int64_t f = feature_ids[k];
                expect(f >= 0 && f < features.n_features(), "an unknown feature");
                for (std::int64_t e = features.entry_ptr[f]; e < features.entry_ptr[f + 1]; ++e)
                    expect(features.configurations[e] < size, "a configuration that a table does not have");
            }
        }
    }
}

template <class Function>
void FactorReader::each_entry(const Function& function) const {
    const FactorGraph& graph = shape().graph;
    const FactorFeatures& rows = data_.features;
    for (std::int64_t t = 0; t < graph.n_tables(); ++t) {
        const std::int64_t table = data_.first_table[number_] + t, begin = graph.table_ptr[t];
        for (std::int64_t k = data_.feature_ptr[table]; k < data_.feature_ptr[table + 1]; ++k) {
            const std::int64_t f = data_.feature_ids[k], own = rows.weight_ptr[f];
            for (std::int64_t e = rows.entry_ptr[f]; e < rows.entry_ptr[f + 1]; ++e)
                function(begin + rows.configurations[e], rows.weights[e] - own, f, data_.values[k]);
        }
    }
}

void FactorReader::load(std::int64_t n) {
    for (const std::int64_t f : features_) place_[f] = -1;
    features_.clear();
    number_ = n;
    std::int64_t begin = 0;
    for (std::int64_t k = data_.feature_ptr[data_.first_table[n]];
         k < data_.feature_ptr[data_.first_table[n + 1]]; ++k) {
        const std::int64_t f = data_.feature_ids[k];
        if (place_[f] >= 0) continue;
        place_[f] = begin;
        begin += data_.features.weight_ptr[f + 1] - data_.features.weight_ptr[f];
        features_.push_back(f);
    }
}

void FactorReader::add_scores(const double* weights, double* scores) const {
    each_entry([&](std::int64_t score, std::int64_t weight, std::int64_t f, double value) {
        scores[score] += value * weights[place_[f] + weight];
    });
}

void FactorReader::add_all_scores(const double* w, double* scores) const {
    each_entry([&](std::int64_t score, std::int64_t weight, std::int64_t f, double value) {
        scores[score] += value * w[data_.features.weight_ptr[f] + weight];
    });
}

void FactorReader::add_gradient(const double* residuals, double* gradient) const {
    each_entry([&](std::int64_t score, std::int64_t weight, std::int64_t f, double value) {
        gradient[place_[f] + weight] += value * residuals[score];
    });
}

void FactorReader::add_difference(const double* residuals, Difference& difference) const {
    each_entry([&](std::int64_t score, std::int64_t weight, std::int64_t f, double value) {
        if (residuals[score] != 0)
            difference.add(data_.features.weight_ptr[f] + weight, value * residuals[score]);
    });
}

}  // namespace crfkit
