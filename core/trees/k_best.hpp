// The highest-scoring spanning trees with their labels.
#pragma once

#include <cstdint>
#include <vector>

#include "trees/graph.hpp"

namespace crfkit {

struct ScoredTree {
    double score = 0;
    std::vector<std::int32_t> heads, labels;  // [n] of the words 1 … n
    bool operator==(const ScoredTree& other) const { return heads == other.heads && labels == other.labels; }
};

// The best tree; of several labels with the same score the first. Throws NoTree.
ScoredTree best_tree(const TreeView& tree);

// The k best trees, best first, all distinct; fewer when fewer exist, none when there is none.
//
// Camerini, Fratta and Maffioli (1980): a set of trees, whose best is known, is split by the arc that its
// second best does without: into the trees with this arc, of which the best is the same, and those without.
// What is left out is an arc with its label. Each tree costs four times the first.
std::vector<ScoredTree> k_best_trees(const TreeView& tree, std::int64_t k);

}  // namespace crfkit
