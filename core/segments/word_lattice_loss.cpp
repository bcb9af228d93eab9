#include "segments/word_lattice_loss.hpp"

#include <algorithm>
#include <utility>

#include "segments/word_lattice_parts.hpp"

namespace crfkit {
namespace {

WordLattices allowed_by(const WordLattices& data, const Annotation& gold) {
    WordArcs arcs = data.arcs;
    if (arcs.exists.empty()) arcs.exists.assign(arcs.labels.size(), 1);
    for (std::size_t a = 0; a < arcs.exists.size(); ++a)
        if (gold.labels[a] == kOffPath) arcs.exists[a] = 0;
    return {data.layout, data.design, std::move(arcs), data.transitions};
}

WordScores scores_of(const WordTransitions& transitions, std::int64_t first) {
    WordScores lists{transitions.weight_ptr, transitions.weights, transitions.values};
    for (std::int32_t& weight : lists.weights) weight += static_cast<std::int32_t>(first);
    if (lists.values.empty()) lists.values.assign(lists.weights.size(), 1.0);
    return lists;
}

}  // namespace

WordLatticeLoss::WordLatticeLoss(std::shared_ptr<const WordLattices> data, Annotation gold,
                                 std::int64_t n_weights, int n_threads)
    : DataLoss(n_weights, data->n_sequences(), n_threads),
      data_(std::move(data)),
      weights_(gold.weights),
      parts_(std::make_shared<WordLatticeParts>(data_, gold, n_weights), n_threads),
      gold_(allowed_by(*data_, gold)),
      arcs_(*data_),
      transitions_(scores_of(data_->transitions, data_->layout->n_weights())),
      all_(*data_, arcs_, weights_),
      allowed_(gold_, arcs_, weights_) {}

double WordLatticeLoss::evaluate(const double* w, double* gradient) {
    std::vector<double> of_arcs, of_transitions;
    arcs_.lists.set(w, of_arcs);
    transitions_.set(w, of_transitions);
    std::vector<double> arcs(of_arcs.size(), 0.0), transitions(of_transitions.size(), 0.0);  // residuals
    double value = 0;
    if (!all_.evaluate(of_arcs, of_transitions, 1, n_threads, value, arcs, transitions) ||
        !allowed_.evaluate(of_arcs, of_transitions, -1, n_threads, value, arcs, transitions))
        return parts_.evaluate(w, gradient);
    std::fill_n(gradient, n_weights, 0.0);
    arcs_.lists.add_gradient(arcs, gradient);
    transitions_.add_gradient(transitions, gradient);
    return value;
}

}  // namespace crfkit
