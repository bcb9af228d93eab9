// Projective trees with adjacent siblings for dense scores, by charts (kernels/sibling_rows.hpp): the fast
// backend of the second order. The engine of hyperpaths answers where this one does not.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "kernels/sibling_rows.hpp"
#include "trees/graph.hpp"

namespace crfkit {

// Memory is reused from sentence to sentence; one for each thread.
class EisnerSiblings {
  public:
    // Arc scores [n + 1, n + 1] and scores of siblings [n + 1, n + 1, n + 1]; −inf forbids, and what is no
    // part of a tree is not read.
    struct Scores {
        const double *arcs, *siblings;
        std::int64_t n_words;
        bool one_root;
    };

    // log Z, and probabilities where there is a place for them. False, and nothing may be used, where numbers
    // may have left the range of doubles, and where no tree exists.
    bool sum(const Scores& scores, double* log_z, ProjectiveParts<double> marginals);

    // The score of the best tree and its heads [n]; among equals the tree that viterbi (hyperpaths/) finds.
    // −inf, and no heads, where no tree exists.
    double best(const Scores& scores, std::int32_t* heads);

  private:
    void lay_out(const Scores& scores, std::int64_t n_arrays, double around);
    Scores pad_short(const Scores& scores);
    void find_best_parts(const Scores& scores);
    void find_best_first(const Scores& scores);
    bool shift(const Scores& scores, double* total);
    using PlaceKernel = double (*)(const SiblingChart&, const SiblingScores&);
    template <class Row>
    double place(const Scores& scores, PlaceKernel all, const Row& row);
    double sum_shifted(const Scores& scores, double* total);
    double close_sums() const;
    void set_goal();
    void write_arcs(double* arcs) const;
    void write_siblings(double* siblings, bool streamed);
    void follow(std::int32_t* heads);

    struct Open {
        SiblingChart::Array kind;
        std::int64_t i, j;
    };

    SiblingChart chart_{};
    Buffer<double> numbers_, siblings_, planes_;
    std::vector<std::int64_t> row_ptr_;
    double around_ = 0;                     // what lies behind the rows: 0 or −inf
    std::int64_t n_arrays_ = 0;             // how many arrays are laid out
    std::int64_t n_words_ = 0, first_ = 0;  // the word, or the root, that is place 0 of the chart
    double partition_ = 0;                  // Z, of scores from which the shifts are subtracted
    std::vector<double> shifts_, highest_;  // [n + 1] what a word loses; its best siblings, for one head
    std::vector<double> bases_;             // [n + 1, n + 1] scores of arcs, less the shift of the word
    std::vector<double> transposed_;        // [n, stride] the same of arcs to the left, rows by dependent
    std::vector<double> root_;              // [n] of the arc from the root, where it has one dependent
    std::vector<double> row_, given_;       // a row of first siblings; scores of a very short sentence
    std::vector<Open> open_;
};

}  // namespace crfkit
