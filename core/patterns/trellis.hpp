// All label sequences of a sequence as paths, in which the patterns that fire are features of arcs.
//
// A level is the list of the nodes of one position: (label, what is alive), where alive are the patterns that
// have begun and may still fire, each with its state. Equal levels are one. A step leads from a level to the
// next one, perhaps through pool nodes, and equal steps are one as well: a trellis is a list of steps, and
// the steps of a whole data set stand in one table. Every label sequence is exactly one path. Nothing here
// depends on weights.
//
// A sequence of T positions has T + 1 steps: from the source to position 0, from position t − 1 to position
// t, from position T − 1 to the sink. The score of a path is
//   Σ_t score(t, label of its node) + Σ_{its arcs} (score of the first-order arc + Σ_{active} value ·
//   w[weight])
// where the arcs from START and to END belong to the scores of the first and the last node.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "data/bigrams.hpp"
#include "data/candidates.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "patterns/matcher.hpp"

namespace crfkit {

// The nodes of a step have numbers of their own: first the n_before nodes of the level before, then n_pools
// pools, then the n_after nodes of the level after. Arcs are sorted by destination, then by source.
//
// A pool stands for several nodes that go on alike on some labels; a node may lead to several pools. Each
// path has one scored arc in a step, straight from node to node or beside a pool; the other arc at a pool,
// the silent one, scores 0 and weighs 1. Silent are the arcs into pools or, where `silent_out` is set, those
// out of pools.
struct Step {
    std::int32_t before, after;  // levels
    std::int32_t n_before, n_pools, n_after;
    bool silent_out;
    std::int64_t n_arcs, first_arc;    // its arcs in the table
    std::int64_t first_in, first_out;  // its pointers in the table
    std::int64_t n_transitions;        // arcs without pools: as Qian et al. (2009) group them

    std::int32_t n_sources() const { return n_before + n_pools; }
    std::int32_t n_destinations() const { return n_pools + n_after; }
    std::int32_t n_nodes() const { return n_before + n_pools + n_after; }
};

struct StepTable {
    std::vector<Step> steps;
    std::vector<std::int64_t> level_ptr;     // [levels + 1]
    std::vector<std::int32_t> level_labels;  // label of each node, ascending in a level; −1: source or sink

    // Of the arcs of all steps. Node numbers and arc numbers are those of the step.
    std::vector<std::int32_t> source, destination;
    std::vector<std::int32_t> arc;     // number among the listed bigrams; −1: none, score 0
    std::vector<std::int32_t> active;  // active set; −1: nothing is active
    // Arcs into node n_before + j of a step: in_ptr[first_in + j]..in_ptr[first_in + j + 1]−1.
    std::vector<std::int32_t> in_ptr;
    // Arcs out of node i: out_arc[first_arc + k] with k from out_ptr[first_out + i] to
    // out_ptr[first_out + i + 1]−1.
    std::vector<std::int32_t> out_ptr, out_arc;

    // ActiveFeatures sets: (weight, value) pairs, weights ascending and counted from the first one of the
    // patterns.
    std::vector<std::int64_t> active_ptr;  // [active sets + 1]
    std::vector<std::int32_t> active_weights;
    std::vector<double> active_values;

    std::int64_t n_active() const { return static_cast<std::int64_t>(active_ptr.size()) - 1; }
    std::int64_t n_arcs() const { return static_cast<std::int64_t>(source.size()); }
    std::span<const std::int32_t> labels(std::int32_t level) const {
        return std::span(level_labels).subspan(level_ptr[level], level_ptr[level + 1] - level_ptr[level]);
    }
    // Whether arc e (counted from the first of its step) is silent.
    bool silent(const Step& step, std::int64_t e) const {
        return step.silent_out ? source[step.first_arc + e] >= step.n_before
                               : destination[step.first_arc + e] < step.n_sources();
    }
    // Σ value · w[weight] of every active set, w counted from the first weight of the patterns.
    void score_active(const double* w, std::vector<double>& scores) const;
    // w[weight] += value · numbers[active set].
    void add_active(const std::vector<double>& numbers, double* w) const;
};

// A trellis that would have too many states or arcs. No memory for it has been taken.
struct TrellisSizeError : std::runtime_error {
    TrellisSizeError(std::int64_t sequence, std::int64_t position, std::int64_t n_states, std::int64_t n_arcs,
                     std::vector<std::int32_t> weights);
    std::int64_t sequence, position;    // where
    std::int64_t n_states;              // at this position, as far as they have been counted
    std::int64_t n_arcs;                // in all steps so far
    std::vector<std::int32_t> weights;  // of the patterns that are alive there, ascending
};

// Where patterns begin: position t of the data set has the starts ptr[t]..ptr[t+1]−1.
struct PatternStarts {
    std::span<const std::int64_t> ptr;  // [positions + 1]
    std::span<const std::int32_t> states;
    std::span<const double> values;             // empty: all 1
    std::span<const std::int32_t> common = {};  // states that begin at every position too, with the value 1
};

struct TrellisLimits {
    std::int64_t max_states;  // nodes of one position
    std::int64_t max_arcs;    // of all steps together
};

// The trellises of a data set. Sequences with the same length, candidates and starts share one.
class Trellises {
  public:
    // Throws std::invalid_argument where no label sequence is possible or the arrays do not fit together, and
    // TrellisSizeError. `first_weight`: place of the patterns' first weight in w [D].
    Trellises(std::shared_ptr<const Layout> layout, std::shared_ptr<const Design> design,
              std::shared_ptr<const PatternMatcher> matcher, const PatternStarts& starts,
              std::int64_t first_weight, const TrellisLimits& limits, int n_threads);

    std::int64_t n_sequences() const { return design->n_sequences(); }
    std::int64_t n_trellises() const { return static_cast<std::int64_t>(trellis_ptr.size()) - 1; }
    // The steps of trellis k, T + 1 of them; none for an empty sequence.
    std::span<const std::int32_t> steps_of(std::int32_t trellis) const {
        return std::span(trellis_steps)
            .subspan(trellis_ptr[trellis], trellis_ptr[trellis + 1] - trellis_ptr[trellis]);
    }
    std::span<const std::int32_t> steps_of_sequence(std::int64_t n) const { return steps_of(trellis_of[n]); }

    std::shared_ptr<const Layout> layout;
    std::shared_ptr<const Design> design;
    std::shared_ptr<const PatternMatcher> matcher;
    Bigrams bigrams;  // the first-order arcs that `StepTable::arc` counts
    std::int64_t first_weight;
    StepTable table;
    std::vector<std::int32_t> trellis_of;     // [N]
    std::vector<std::int64_t> trellis_ptr;    // [trellises + 1]
    std::vector<std::int32_t> trellis_steps;  // numbers in table.steps
};

}  // namespace crfkit
