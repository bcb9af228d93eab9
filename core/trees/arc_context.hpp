// What the score of one arc is made of, and what second-order parts add to it: why a word has its head.
#pragma once

#include <cstdint>
#include <vector>

#include "trees/arc_weights.hpp"
#include "trees/treebank.hpp"

namespace crfkit {

struct ArcContext {
    std::vector<std::int64_t> templates;  // numbers of the templates of features that have weights, ascending
    std::vector<double> features;         // the sum of these weights for each template
    std::vector<double> labels;           // [R] the scores of the labels, without the above
};

// Of the arc head → dependent of sentence n.
ArcContext arc_context(const ArcWeights& weights, const Treebank& treebank, std::int64_t n, std::int64_t head,
                       std::int64_t dependent);

// The trees in which a word has a given head: with E the mean over these,
struct HeadContext {
    double log_probability;         // −inf: there are none
    double siblings, grandparents;  // E[score of the parts of second order that the arc belongs to]
};

}  // namespace crfkit
