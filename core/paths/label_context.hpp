// Why a position has a label: the logarithm of the sum over all label sequences that have it there, in parts.
//
// With Z(b) the sum over the label sequences in which position i has label b, E_b the mean over these, and
// F(b) the sum over their beginnings, positions 0 … i,
//
//   log Z(b) = own + before + after + left + right
//   own      E_b[score of the nodes of position i]
//   before   E_b[score of the arcs into position i]
//   after    E_b[score of the arcs from position i to the next]
//   left     log F(b) − own − before        what the positions before add
//   right    log Z(b) − log F(b) − after    what the positions behind add
//
// In a chain of first order own is the score of the label, and left and right are independent of each other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "paths/engine.hpp"
#include "paths/label_sequences.hpp"

namespace crfkit {

struct LabelContext {
    double log_probability = kAbsent;  // −inf: the label is impossible, and all else is 0
    double own = 0, before = 0, after = 0, left = 0, right = 0;
    // The likeliest labels of the positions beside it, given the label; −1: there is no such position.
    std::int32_t label_before = -1, label_after = -1;
};

// Probabilities below are computed from a pass in which the position has the label for certain.
inline constexpr double kUncertain = 1e-200;

namespace label_context_detail {

// Adds up the scores of arcs, and finds the likeliest of the labels that they lead to.
class ArcMean {
  public:
    void add(double probability, double score) { sum_ += probability * score; }
    void meet(std::int32_t label, double probability) {
        const auto known = std::find(labels_.begin(), labels_.end(), label);
        if (known == labels_.end()) {
            labels_.push_back(label);
            probs_.push_back(probability);
        } else {
            probs_[known - labels_.begin()] += probability;
        }
    }
    double score() const { return sum_; }
    std::int32_t label() const {
        if (labels_.empty()) return -1;
        return labels_[std::max_element(probs_.begin(), probs_.end()) - probs_.begin()];
    }

  private:
    double sum_ = 0;
    std::vector<std::int32_t> labels_;
    std::vector<double> probs_;
};

// Mass [nodes] goes from the nodes of level i that have the label to the arcs into them, and through inner
// nodes of the level.
template <LabelGraph Graph>
ArcMean find_before(const Graph& graph, PathEngine& engine, std::int64_t i, std::int32_t label,
                    double certain) {
    ArcMean found;
    const auto level = graph.level(i);
    std::vector<double> mass(static_cast<std::size_t>(level.last - level.first), 0.0);
    for (std::int64_t j = level.last; j-- > level.first;) {
        double& here = mass[j - level.first];
        if (j >= level.outer && graph.label(i, level.node_base + j) == label)
            here = engine.node_probs[level.node_base + j] / certain;
        if (here <= 0) continue;
        const auto arcs = level.into(j);
        const double* back = engine.back<Graph>(level, arcs);
        for (std::int64_t k = 0; k < arcs.n; ++k) {
            const double prob = here * back[k];
            if (prob <= 0) continue;
            const std::int64_t source = arcs.source(k), from = level.level_of(source);
            found.add(prob, arcs.score(k));
            if (from == i) mass[source - level.first] += prob;
            if (from >= 0 && from < i) found.meet(graph.label(from, level.node_base + source), prob);
        }
    }
    return found;
}

// An arc into level i + 1 comes from the label with a probability of its own: 1 or 0 for nodes of level i,
// and a mean over the arcs into it for an inner node.
template <LabelGraph Graph>
ArcMean find_after(const Graph& graph, PathEngine& engine, std::int64_t i, std::int32_t label,
                   double certain) {
    ArcMean found;
    const auto level = graph.level(i + 1);
    std::vector<double> shares(static_cast<std::size_t>(level.last - level.first), 0.0);
    for (std::int64_t j = level.first; j < level.last; ++j) {
        const double here = engine.node_probs[level.node_base + j] / certain;
        if (here <= 0) continue;
        const auto arcs = level.into(j);
        const double* back = engine.back<Graph>(level, arcs);
        const std::int32_t to = j < level.outer ? -1 : graph.label(i + 1, level.node_base + j);
        for (std::int64_t k = 0; k < arcs.n; ++k) {
            if (back[k] <= 0) continue;
            const std::int64_t source = arcs.source(k), from = level.level_of(source);
            const double share = from == i + 1 ? shares[source - level.first]
                                 : from == i   ? graph.label(i, level.node_base + source) == label
                                               : 0.0;
            if (share <= 0) continue;
            if (j < level.outer) shares[j - level.first] += share * back[k];
            found.add(here * back[k] * share, arcs.score(k));
            if (to >= 0) found.meet(to, here * back[k] * share);
        }
    }
    return found;
}

}  // namespace label_context_detail

// After engine.marginals(graph), which returned log_z. −inf where the label has a probability below
// kUncertain: then ask again where the graph has no other label at the position.
template <LabelGraph Graph>
LabelContext label_context(const Graph& graph, PathEngine& engine, double log_z, std::int64_t i,
                           std::int32_t label) {
    const auto level = graph.level(i);
    double certain = 0, own = 0, best = kAbsent, beginnings = 0;
    const auto each = [&](const auto& function) {
        for (std::int64_t j = level.outer; j < level.last; ++j)
            if (graph.label(i, level.node_base + j) == label && engine.node_probs[level.node_base + j] > 0)
                function(j, engine.node_probs[level.node_base + j],
                         engine.log_message(i, level.node_base + j));
    };
    each([&](std::int64_t j, double prob, double message) {
        certain += prob;
        own += prob * level.node_score(j);
        best = std::max(best, message);
    });
    LabelContext found;
    if (certain < kUncertain) return found;
    each([&](std::int64_t, double, double message) { beginnings += std::exp(message - best); });
    const double log_beginnings = best + std::log(beginnings);
    const auto before = label_context_detail::find_before(graph, engine, i, label, certain);
    const auto after = label_context_detail::find_after(graph, engine, i, label, certain);
    found.log_probability = std::log(certain);
    found.own = own / certain;
    found.before = before.score();
    found.after = after.score();
    found.label_before = before.label();
    found.label_after = after.label();
    found.left = log_beginnings - found.own - found.before;
    found.right = log_z + found.log_probability - log_beginnings - found.after;
    return found;
}

// The same of one node of level t, for graphs whose arcs jump over levels: log Z of the paths that pass it.
// After engine.marginals(graph), which returned log_z; −inf where no path does.
template <PathGraph Graph>
LabelContext node_context(const Graph& graph, PathEngine& engine, double log_z, std::int64_t t,
                          std::int64_t node) {
    LabelContext found;
    const double certain = engine.node_probs[node];
    if (certain <= 0) return found;
    const auto level = graph.level(t);
    const auto arcs = level.into(node - level.node_base);
    const double* back = engine.back<Graph>(level, arcs);
    for (std::int64_t k = 0; k < arcs.n; ++k)
        if (back[k] > 0) found.before += back[k] * arcs.score(k);
    // All arcs that leave it lead to one level, to its inner nodes or to END.
    for (std::int64_t s = t + 1, met = 0; s < graph.n_levels() && !met; ++s) {
        const auto next = graph.level(s);
        std::vector<double> shares(static_cast<std::size_t>(next.last - next.first), 0.0);
        for (std::int64_t j = next.first; j < next.last; ++j) {
            const auto into = next.into(j);
            const double* given = engine.back<Graph>(next, into);
            const double here = engine.node_probs[next.node_base + j];
            for (std::int64_t k = 0; k < into.n; ++k) {
                const std::int64_t source = into.source(k);
                const bool leaves = next.node_base + source == node;
                const double share = leaves                       ? 1.0
                                     : next.level_of(source) == s ? shares[source - next.first]
                                                                  : 0.0;
                met += leaves;
                if (share <= 0 || given[k] <= 0) continue;
                if (j < next.outer) shares[j - next.first] += share * given[k];
                found.after += here * given[k] * share / certain * into.score(k);
            }
        }
    }
    const double log_beginnings = engine.log_message(t, node);
    found.log_probability = std::min(std::log(certain), 0.0);
    found.own = level.node_score(node - level.node_base);
    found.left = log_beginnings - found.own - found.before;
    found.right = log_z + found.log_probability - log_beginnings - found.after;
    return found;
}

// The same for K positions in a row, of a sequence in which only some labels are allowed there.
struct WindowContext {
    double log_partition = kAbsent;  // −inf: no label sequence is allowed, and nothing else is filled
    std::vector<double> beginnings;  // [K] log F: of the sum over all beginnings up to each position
    std::vector<double> own;         // [K] E[score of the nodes]
    std::vector<double> arcs;        // [K + 1] E[score of the arcs into each position, and out of the last]
    std::vector<double> probs;       // [K, L] P(label)
};

// After engine.marginals(graph), which returned log_z > −inf: of the positions first … first + K − 1.
template <LabelGraph Graph>
WindowContext window_context(const Graph& graph, PathEngine& engine, double log_z, std::int64_t first,
                             std::int64_t n_positions, std::int32_t n_labels) {
    WindowContext found;
    found.log_partition = log_z;
    found.own.assign(static_cast<std::size_t>(n_positions), 0.0);
    found.arcs.assign(static_cast<std::size_t>(n_positions) + 1, 0.0);
    found.probs.assign(static_cast<std::size_t>(n_positions * n_labels), 0.0);
    std::vector<double> messages;
    for (std::int64_t k = 0; k <= n_positions; ++k) {
        const auto level = graph.level(first + k);
        messages.clear();
        for (std::int64_t j = level.first; j < level.last; ++j) {
            const std::int64_t node = level.node_base + j;
            const double prob = engine.node_probs[node];
            if (prob <= 0) continue;
            const auto arcs = level.into(j);
            const double* back = engine.back<Graph>(level, arcs);
            for (std::int64_t e = 0; e < arcs.n; ++e)
                if (back[e] > 0) found.arcs[k] += prob * back[e] * arcs.score(e);
            if (k == n_positions || j < level.outer) continue;
            found.own[k] += prob * level.node_score(j);
            found.probs[k * n_labels + graph.label(first + k, node)] += prob;
            messages.push_back(engine.log_message(first + k, node));
        }
        if (k == n_positions) break;
        const double best = *std::max_element(messages.begin(), messages.end());
        double sum = 0;
        for (const double message : messages) sum += std::exp(message - best);
        found.beginnings.push_back(best + std::log(sum));
    }
    return found;
}

}  // namespace crfkit
