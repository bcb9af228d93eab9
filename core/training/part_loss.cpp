#include "training/part_loss.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "paths/viterbi.hpp"
#include "training/sequence_sums.hpp"

namespace crfkit {
namespace {

// Calls function(list, id) for all items of all lists.
template <class Function>
void each_item(const PartLists& lists, const Function& function) {
    for (std::int64_t i = 0; i < lists.size(); ++i)
        for (std::int64_t k = lists.ptr[i]; k < lists.ptr[i + 1]; ++k) function(i, lists.ids[k]);
}

// Calls function(id) for the items of one list.
template <class Function>
void each_item(const PartLists& lists, std::int64_t i, const Function& function) {
    for (std::int64_t k = lists.ptr[i]; k < lists.ptr[i + 1]; ++k) function(lists.ids[k]);
}

}  // namespace

void PartScores::set(const Parts& parts, const double* weights) {
    nodes.assign(static_cast<std::size_t>(parts.n_nodes()), 0.0);
    arcs.assign(static_cast<std::size_t>(parts.n_arcs()), 0.0);
    factors.resize(static_cast<std::size_t>(parts.factors.size()));
    for (std::size_t f = 0; f < factors.size(); ++f) {
        double sum = 0;
        for (std::int64_t k = parts.factors.ptr[f]; k < parts.factors.ptr[f + 1]; ++k)
            sum += parts.values[k] * weights[parts.factors.ids[k]];
        factors[f] = sum;
    }
    each_item(parts.node_factors, [&](std::int64_t j, std::int64_t f) { nodes[j] += factors[f]; });
    each_item(parts.arc_factors, [&](std::int64_t e, std::int64_t f) { arcs[e] += factors[f]; });
}

// Nodes keep their order and levels, so that all pointers are numbers of nodes that are kept before.
void AllowedParts::find(const Parts& parts) {
    const std::int64_t n = parts.n_nodes();
    nodes.clear();
    arcs.clear();
    shape_ = {};
    place_.assign(static_cast<std::size_t>(n), -1);
    shape_.in_ptr.assign(1, 0);
    for (std::int64_t t = -1, j = 0; t < parts.n_levels(); ++t) {
        const std::int64_t here = static_cast<std::int64_t>(nodes.size());
        if (t >= 0) {
            shape_.level_ptr.push_back(here);
            shape_.outer.push_back(here);
        }
        for (const std::int64_t end = parts.level_ptr[t + 1]; j < end; ++j) {
            if (!parts.node_allowed[j]) continue;
            const std::size_t n_arcs = arcs.size();
            for (std::int64_t e = parts.in_ptr[j]; e < parts.in_ptr[j + 1]; ++e) {
                if (!parts.arc_allowed[e] || place_[parts.source[e]] < 0) continue;
                arcs.push_back(e);
                shape_.source.push_back(place_[parts.source[e]]);
                shape_.silent.push_back(parts.silent[e]);
            }
            if (j > 0 && j + 1 < n && arcs.size() == n_arcs) continue;  // START does not lead to it
            place_[j] = static_cast<std::int64_t>(nodes.size());
            nodes.push_back(j);
            shape_.level_of.push_back(t);
            shape_.in_ptr.push_back(static_cast<std::int64_t>(arcs.size()));
            if (t >= 0 && j < parts.outer[t]) shape_.outer.back() = static_cast<std::int64_t>(nodes.size());
        }
    }
    shape_.level_ptr.push_back(static_cast<std::int64_t>(nodes.size()));
    shape_.find_oldest();
}

ScoredArrayGraph AllowedParts::graph(const PartScores& scores) const {
    std::vector<double> of_arcs(arcs.size()), of_nodes(nodes.size());
    for (std::size_t e = 0; e < arcs.size(); ++e) of_arcs[e] = scores.arcs[arcs[e]];
    for (std::size_t j = 0; j < nodes.size(); ++j) of_nodes[j] = scores.nodes[nodes[j]];
    return {shape_, std::move(of_arcs), std::move(of_nodes)};
}

PartSequence::PartSequence(const PartSource& source)
    : source_(source), reader_(source.open()), place_(static_cast<std::size_t>(source.n_weights), -1) {}

void PartSequence::load(std::int64_t n) {
    for (const SlotRange range : ranges()) place_[range.begin] = -1;
    clear();
    reader_->load(n, parts_);
    weight_ = source_.weights[n];
    for (std::int64_t& id : parts_.factors.ids) {
        std::int32_t& place = place_[id];
        if (place < 0) {
            place = static_cast<std::int32_t>(n_weights());
            touch(id, id + 1);
        }
        id = place;
    }
    allowed_.find(parts_);
}

// residuals += weight · Aᵀ P of all paths, or of the allowed ones; with `moves`, how it changes along this
// direction. Returns log Z; NaN where it is no number.
double PartSequence::add_marginals(const AllowedParts* some, const PartScores* moves, double weight,
                                   double* residuals) {
    const auto graph_of = [&](const PartScores& scores) {
        return some ? some->graph(scores) : scores.graph(parts_);
    };
    const ScoredArrayGraph graph = graph_of(scores_);
    const double log_partition = engine_.marginals(graph);
    if (!std::isfinite(log_partition)) return std::numeric_limits<double>::quiet_NaN();
    if (moves) engine_.hessian_vector(graph, graph_of(*moves));
    const auto add = [&](const PartLists& factors, const std::vector<double>& numbers,
                         const std::vector<std::int64_t>* parts) {
        for (std::size_t i = 0; i < numbers.size(); ++i)
            each_item(factors, parts ? (*parts)[i] : static_cast<std::int64_t>(i),
                      [&](std::int64_t f) { residuals[f] += weight * numbers[i]; });
    };
    add(parts_.node_factors, moves ? engine_.node_changes : engine_.node_probs,
        some ? &some->nodes : nullptr);
    add(parts_.arc_factors, moves ? engine_.arc_changes : engine_.arc_probs, some ? &some->arcs : nullptr);
    return log_partition;
}

double PartSequence::differentiate(const double* weights, const double* direction, double* residuals) {
    std::fill_n(residuals, n_residuals(), 0.0);
    scores_.set(parts_, weights);
    if (direction) moves_.set(parts_, direction);
    const PartScores* moves = direction ? &moves_ : nullptr;
    const double log_partition = add_marginals(nullptr, moves, weight_, residuals);
    return weight_ * (log_partition - add_marginals(&allowed_, moves, -weight_, residuals));
}

void PartSequence::gradient(const double* residuals, double* gradient) {
    std::fill_n(gradient, n_weights(), 0.0);
    for (std::int64_t f = 0; f < parts_.factors.size(); ++f)
        for (std::int64_t k = parts_.factors.ptr[f]; k < parts_.factors.ptr[f + 1]; ++k)
            gradient[parts_.factors.ids[k]] += parts_.values[k] * residuals[f];
}

void PartMistakes::walk(const ScoredArrayGraph& graph, const AllowedParts* some, double sign,
                        std::vector<std::int32_t>& labels) {
    const auto count = [&](std::int64_t f) { counts_[f] += sign; };
    labels.assign(static_cast<std::size_t>(parts_.n_levels()), -1);
    is_allowed_ = true;
    const double score = viterbi(graph, best_, [&](std::int64_t t, std::int64_t node, std::int64_t arc) {
        const std::int64_t j = some ? some->nodes[node] : node, e = some ? some->arcs[arc] : arc;
        each_item(parts_.node_factors, j, count);
        each_item(parts_.arc_factors, e, count);
        if (parts_.label[j] >= 0) labels[t] = parts_.label[j];
        is_allowed_ = is_allowed_ && parts_.node_allowed[j] && parts_.arc_allowed[e];
    });
    if (!std::isfinite(score))  // that some output is possible was seen to beforehand
        throw std::overflow_error(
            "the scores of a sequence left the range of numbers, expected smaller values of features");
}

// Factors that both paths have are counted off before any value is added: what they share leaves no rounding.
std::int64_t PartMistakes::find(std::int64_t n, Difference& difference) {
    reader_->load(n, parts_);
    counts_.assign(static_cast<std::size_t>(parts_.factors.size()), 0.0);
    scores_.set(parts_, w_);
    walk(scores_.graph(parts_), nullptr, -1, predicted_);
    if (is_allowed_) return 0;
    allowed_.find(parts_);
    walk(allowed_.graph(scores_), &allowed_, 1, right_);
    for (std::int64_t f = 0; f < parts_.factors.size(); ++f)
        for (std::int64_t k = parts_.factors.ptr[f]; counts_[f] != 0 && k < parts_.factors.ptr[f + 1]; ++k)
            difference.add(parts_.factors.ids[k], counts_[f] * parts_.values[k]);
    std::int64_t n_wrong = 0;
    for (std::size_t t = 0; t < right_.size(); ++t) n_wrong += right_[t] != predicted_[t];
    return std::max<std::int64_t>(n_wrong, 1);  // they differ by arcs alone
}

double PartLoss::sum(const double* w, const double* v, double* out) const {
    return sum_sequences(n_sequences, n_weights, n_threads, w, v, out,
                         [&] { return std::make_unique<PartSequence>(*source_); });
}

}  // namespace crfkit
