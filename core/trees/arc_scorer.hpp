// Scores of the parts of one sentence by the weights of a trained parser, without lists of features: those of
// each part are found, added up and forgotten, so that long sentences take no more memory than their scores.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "trees/arc_features.hpp"
#include "trees/arc_weights.hpp"
#include "trees/label_sums.hpp"
#include "trees/tree_parts.hpp"
#include "trees/vector_scores.hpp"

namespace crfkit {

class ArcScorer {
  public:
    explicit ArcScorer(const ArcWeights& weights) : weights_(weights), vectors_(weights.layout()) {}

    // Goes to a sentence, and scores its labels by one word and side.
    void load(const Treebank& treebank, std::int64_t n);
    std::int64_t n_words() const { return features_.n_words(); }

    // The scores [R] of the labels of an arc, until the next question; the sums are those of
    // SentenceFeatures::score, to the last bit.
    const double* labels(std::int64_t head, std::int64_t dependent);
    // scores [n + 1, n + 1, R]; 0 on the diagonal and in column 0.
    void fill(double* scores);
    // Scores of the labels of given arcs and of parts of second order (TreeParts::n_scores).
    void fill(const TreeParts& parts, double* scores);
    // Of each arc the score of its best label and log Σ_r exp(score_r), [n + 1, n + 1]; 0 there.
    void sum_labels(double* tops, double* sums);
    // The best label of an arc.
    std::int32_t best_label(std::int64_t head, std::int64_t dependent);

  private:
    // row [R] += the weights of the features of labels among keys_.
    void add_labels(double* row) { weights_.add_labels(keys_, ranges_, row); }

    const ArcWeights& weights_;
    ArcFeatures features_;
    VectorScores vectors_;
    KeyList keys_;
    std::vector<ArcWeights::Range> ranges_;
    Buffer<double> by_dependent_, by_head_;  // [2 (n + 1), R]
    Buffer<double> row_, shares_;            // [R]
    LabelSums label_sums_;
};

}  // namespace crfkit
