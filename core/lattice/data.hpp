// A data set as lattices: their nodes, the weights that score each node, and blocks of both for training.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/arc_model.hpp"
#include "data/blocks.hpp"
#include "data/candidates.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"

namespace crfkit {

// Calls found(i, p) for every place i of `labels` that pair p of the feature scores. Both lists ascend.
template <class Function>
void each_weight(const Layout& layout, std::int32_t feature, const std::int32_t* labels, std::int64_t n,
                 const Function& found) {
    const std::int32_t* pairs = layout.pair_labels.data();
    std::int64_t p = layout.pair_ptr[feature];
    const std::int64_t end = layout.pair_ptr[feature + 1];
    const bool many = end - p > 8 * n;  // then search instead of walking
    for (std::int64_t i = 0; i < n && p < end; ++i) {
        if (many)
            p = std::lower_bound(pairs + p, pairs + end, labels[i]) - pairs;
        else
            while (p < end && pairs[p] < labels[i]) ++p;
        if (p < end && pairs[p] == labels[i]) found(i, p);
    }
}

// Which weights score each node: ids of state pairs, in the form of ActiveIds with nodes in place of
// positions. A node with label b has the pairs (f, b) of the features f of its position.
ActiveIds node_weights(const Layout& layout, const Design& design, const Candidates& candidates,
                       int n_threads);

// Sequences first_sequence..last_sequence−1. `lists` are
// for each weight of the block the nodes that it scores, counted from first_node; where labels have facets,
// for each feature its positions, counted from first_position.
struct LatticeBlock {
    std::int64_t first_node, last_node, first_position, last_position;
    std::int64_t first_sequence, last_sequence;
    Inverted lists;
    std::vector<std::int64_t> ranges;  // [kRanges + 1] of the lists
};

// `model` must outlive it.
struct LatticeData {
    // Without `listed`, the weights of nodes are found whenever these are scored: for scores that are asked
    // for once.
    LatticeData(const Layout& layout, const ArcModel& model, const Design& design, int n_threads,
                bool listed = true);

    const ArcModel& model;
    Candidates candidates;
    ActiveIds weights;  // of nodes; empty where they are not listed, and where labels have facets: then
                        // positions are scored by facet
};

std::vector<LatticeBlock> cut_into_blocks(const Layout& layout, const Design& design, const LatticeData& data,
                                          BlockUse use, int n_threads);

}  // namespace crfkit
