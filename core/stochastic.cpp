#include "stochastic.hpp"

#include <algorithm>

#include "lattice_loss.hpp"

namespace crfkit {
namespace {

constexpr double kSmallestFactor = 1e-6;

double sum_of(std::span<const std::int64_t> weights, const double* v) {
    double sum = 0;
    for (const std::int64_t i : weights) sum += v[i];
    return sum;
}

void move(std::span<const std::int64_t> weights, double by, double* v) {
    for (const std::int64_t i : weights) v[i] += by;
}

}  // namespace

Stochastic::Stochastic(const Layout& layout, const Design& design, const Annotation& gold,
                       const LatticeData& data, double l2)
    : layout_(layout), design_(design), gold_(gold), data_(data), l2_(l2), scorer_(layout, design, data) {}

double Stochastic::pass(double* w, std::span<const std::int32_t> order, std::span<const double> rates) {
    const std::int64_t n_weights = layout_.n_weights();
    const auto n_sequences = static_cast<double>(std::max<std::int64_t>(1, design_.n_sequences()));
    const auto fold = [&] {
        for (std::int64_t i = 0; i < n_weights; ++i) w[i] *= factor_;
        factor_ = 1;
    };
    factor_ = 1;
    double loss = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
        factor_ *= 1 - rates[k] * l2_ / n_sequences;
        if (factor_ < kSmallestFactor) fold();
        if (design_.sequence_ptr[order[k]] < design_.sequence_ptr[order[k] + 1])
            loss += step(order[k], rates[k], w);
    }
    fold();
    return loss;
}

double Stochastic::step(std::int64_t n, double rate, double* v) {
    const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
    lattice_.build(data_.model.bigrams, data_.candidates, first, last);
    static const ArcTables none;
    scorer_.set(v, none);
    scorer_.score_features(n, scores_);
    for (std::int64_t j = 0; j < lattice_.site_ptr[1]; ++j)
        scores_[j] += sum_of(data_.model.of_start(lattice_.labels[j]), v);
    for (std::int64_t j = lattice_.site_ptr[lattice_.n_sites() - 1]; j < lattice_.n_nodes(); ++j)
        scores_[j] += sum_of(data_.model.of_end(lattice_.labels[j]), v);
    for (double& score : scores_) score *= factor_;
    localise_arcs(v);
    node_residuals_.assign(scores_.size(), 0.0);
    arc_residuals_.assign(lattice_.arc.size(), 0.0);
    const double loss =
        lattice_loss<double>(lattice_, arcs_, scores_, nullptr, gold_, first, gold_.weights[n],
                             {node_residuals_.data(), arc_residuals_.data()});
    move_nodes(n, -rate / factor_, v);
    move_arcs(-rate / factor_, v);
    return loss;
}

// Numbers the arcs of the lattice by themselves and scores them: the weights move with every step.
void Stochastic::localise_arcs(const double* v) {
    numbers_ = lattice_.arc;
    arcs_.scores.assign(numbers_.size(), 0.0);
    for (std::size_t e = 0; e < numbers_.size(); ++e) {
        if (numbers_[e] < 0) continue;
        arcs_.scores[e] = factor_ * sum_of(data_.model.of_arc(numbers_[e]), v);
        lattice_.arc[e] = static_cast<std::int32_t>(e);
    }
    arcs_.exponentiate(data_.model.bigrams.soft);
}

// v += step · Φᵀ residuals of the nodes.
void Stochastic::move_nodes(std::int64_t n, double step, double* v) {
    const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
    for (std::int64_t j = 0; j < lattice_.site_ptr[1]; ++j)
        move(data_.model.of_start(lattice_.labels[j]), step * node_residuals_[j], v);
    for (std::int64_t j = lattice_.site_ptr[lattice_.n_sites() - 1]; j < lattice_.n_nodes(); ++j)
        move(data_.model.of_end(lattice_.labels[j]), step * node_residuals_[j], v);
    if (layout_.facets.empty()) {
        const Firing& fired = data_.weights;
        const std::int64_t node = data_.candidates.site_ptr[first];
        for (std::int64_t j = 0; j < lattice_.n_nodes(); ++j)
            for (std::int64_t i = fired.ptr[node + j]; i < fired.ptr[node + j + 1]; ++i)
                v[fired.ids[i]] +=
                    step * node_residuals_[j] * (fired.values.size() > 0 ? fired.values[i] : 1.0);
        return;
    }
    const Facets& facets = layout_.facets;
    const Firing& features = design_.features;
    const std::int32_t shift = layout_.n_labels + 1;
    for (std::int64_t t = first; t < last; ++t) {
        by_facet_.assign(static_cast<std::size_t>(facets.n), 0.0);
        for (std::int64_t j = lattice_.site_ptr[t - first]; j < lattice_.site_ptr[t - first + 1]; ++j)
            for (std::int64_t i = facets.ptr[lattice_.labels[j]]; i < facets.ptr[lattice_.labels[j] + 1]; ++i)
                by_facet_[facets.ids[i] - shift] += step * node_residuals_[j];
        for (std::int64_t i = features.ptr[t]; i < features.ptr[t + 1]; ++i) {
            const std::int32_t f = features.ids[i];
            const double value = features.values.size() > 0 ? features.values[i] : 1.0;
            for (std::int64_t p = layout_.pair_ptr[f]; p < layout_.pair_ptr[f + 1]; ++p)
                v[p] += value * by_facet_[layout_.pair_labels[p] - shift];
        }
    }
}

void Stochastic::move_arcs(double step, double* v) const {
    for (std::size_t e = 0; e < numbers_.size(); ++e)
        if (numbers_[e] >= 0) move(data_.model.of_arc(numbers_[e]), step * arc_residuals_[e], v);
}

}  // namespace crfkit
