// A data set as lattices: their nodes, the weights that score each node, and blocks of both for training.
#pragma once

#include <cstdint>
#include <vector>

#include "candidates.hpp"
#include "design.hpp"
#include "layout.hpp"

namespace crfkit {

// Which weights score each node: ids of state pairs, in the form of a Firing with nodes in place of sites.
// A node with label b has the pairs (f, b) of the features f of its site.
Firing node_weights(const Layout& layout, const Design& design, const Candidates& candidates, int n_threads);

// Sequences chunks.front()..chunks.back()−1, cut into chunks that are done one after the other; `weights`
// turns node_weights round: for each weight of the block the nodes that it scores, counted from first_node.
struct LatticeBlock {
    std::int64_t first_node, last_node;
    std::vector<std::int64_t> chunks;
    Inverted weights;
    std::vector<std::int64_t> tasks;  // lists tasks[i]..tasks[i+1]−1 belong together
};

struct LatticeData {
    LatticeData(const Layout& layout, const Design& design, int n_threads);

    Bigrams bigrams;
    Candidates candidates;
    Firing weights;
    // Which weights of arcs score each listed arc: arc_ids[arc_ptr[k]..arc_ptr[k+1]−1].
    std::vector<std::int64_t> arc_ptr;  // [A + 1]
    std::vector<std::int32_t> arc_ids;
    std::vector<std::vector<std::int32_t>> labels_of;  // [outcomes] the labels that are or have each outcome

    // Calls found(b, i) for every label b that weight i of the arcs scores when it comes first.
    template <class Function>
    void each_start(const Layout& layout, const Function& found) const {
        for (std::size_t i = 0; i < layout.arc_before.size(); ++i)
            if (layout.arc_before[i] == layout.n_labels)
                for (const std::int32_t b : labels_of[layout.arc_after[i]]) found(b, i);
    }
    // The same for labels that come last.
    template <class Function>
    void each_end(const Layout& layout, const Function& found) const {
        for (std::size_t i = 0; i < layout.arc_after.size(); ++i)
            if (layout.arc_after[i] == layout.n_labels)
                for (const std::int32_t b : labels_of[layout.arc_before[i]]) found(b, i);
    }
};

std::vector<LatticeBlock> cut_into_blocks(const Layout& layout, const Design& design, const LatticeData& data,
                                          int n_threads);

}  // namespace crfkit
