// The graph of arcs that the spanning trees of a sentence choose from, and how it falls into parts.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

namespace crfkit {

inline constexpr double kNever =
    -std::numeric_limits<double>::infinity();  // the score of an arc that is absent

// Scores of one sentence of n words: [n + 1, n + 1, R] (head, dependent, label), 0 is the root. The diagonal
// and column 0 are ignored; −inf forbids. Unlabelled trees have R = 1.
struct TreeView {
    std::int64_t n_words;   // n
    std::int64_t n_labels;  // R
    const double* scores;
    bool one_root;  // exactly one word hangs on the root, else one or more

    std::int64_t side() const { return n_words + 1; }
    std::int64_t size() const { return side() * side() * n_labels; }
    const double* labels(std::int64_t head, std::int64_t dependent) const {
        return scores + (head * side() + dependent) * n_labels;
    }
};

// Numbers in the shapes of the scores of projective trees; `siblings` is null where these have none.
template <class Number>
struct ProjectiveParts {
    Number* arcs;           // [n + 1, n + 1, R]
    Number* siblings;       // [n + 1, n + 1, n + 1]
    bool streamed = false;  // those of all sentences are larger than caches, and may be written past these
};

// No tree exists; `what` names the word that prevents it.
struct NoTree : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// Throws NoTree for words (1, 2, …) that no tree reaches; `heads` tells whether the first has any possible
// head.
[[noreturn]] void refuse_unreached(std::int64_t word, bool has_heads);
// Throws NoTree for two words that both have to hang on the root, which may have only one.
[[noreturn]] void refuse_two_roots(std::int64_t word, std::int64_t other);

// Words that reach each other by arcs. Every tree over all words is a tree within each part, so parts are
// independent: Z = Π Z(part), with all arcs from outside into a word of the part as its arcs from the root.
struct TreePart {
    std::vector<std::int32_t> words;  // numbers 1 … n, ascending
    bool one_root;      // exactly one word has its head outside: the part that the only root arc leads into
    bool root_is_head;  // the root may be a head here
};

// The parts of a graph with arc scores [n + 1, n + 1], in no particular order. Throws NoTree.
std::vector<TreePart> parts_of(const double* arcs, std::int64_t n_words, bool one_root);

// Arcs over all their labels, [n + 1, n + 1] each. The diagonal and column 0 hold −inf.
struct ArcSums {
    std::vector<double> scores;  // log Σ_r exp(score)
    std::vector<double> tops;    // the largest score; empty: there is one label
    std::vector<double> sums;    // Σ_r exp(score − top), at least 1; 0 where there is no arc
    bool far = false;  // scores of a word lie far apart, or sums of them are far, and all are numbers
};
inline double top_of(const ArcSums& arcs, std::size_t arc) {
    return arcs.tops.empty() ? arcs.scores[arc] : arcs.tops[arc];
}
inline double sum_of(const ArcSums& arcs, std::size_t arc) {
    return arcs.tops.empty() ? (arcs.scores[arc] > kNever ? 1.0 : 0.0) : arcs.sums[arc];
}
ArcSums summed_arcs(const TreeView& tree);
// The probability of a label given its arc: p_r = exp(score_r − top) / Σ_r exp(score_r − top).
inline double label_share(double score, const ArcSums& arcs, std::size_t arc) {
    return sum_of(arcs, arc) > 0 ? std::exp(score - top_of(arcs, arc)) / sum_of(arcs, arc) : 0.0;
}

// From this size on doubles are not added up and compared, but exact sums: a difference of two of them is off
// by up to 1e−11, and beyond 1.8e308 it has no value at all.
inline constexpr double kFarScore = 0x1p16;
// Whether a score is no number, nor −inf.
inline bool is_unusable(double score) { return !(score < std::numeric_limits<double>::infinity()); }

}  // namespace crfkit
