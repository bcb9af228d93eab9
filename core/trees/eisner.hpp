// Eisner's algorithm for dense scores of arcs, by charts (kernels/eisner_rows.hpp): the fast backend of
// projective trees of the first order. The engine of hyperpaths answers where this one does not.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "kernels/eisner_rows.hpp"
#include "trees/graph.hpp"

namespace crfkit {

// Memory is reused from sentence to sentence; one for each thread.
class Eisner {
  public:
    // Arc scores [n + 1, n + 1], −inf where there is no arc; the diagonal and column 0 are not read.
    // log Z, and the probabilities of arcs into `marginals` [n + 1, n + 1], which may be null. False, and
    // nothing may be used, where numbers may have left the range of doubles, and where no tree exists.
    bool sum(const double* arcs, std::int64_t n_words, bool one_root, double* log_z, double* marginals);

    // The score of the best tree and its heads [n]; among equals the tree that viterbi (hyperpaths/) finds.
    // −inf, and no heads, where no tree exists.
    double best(const double* arcs, std::int64_t n_words, bool one_root, std::int32_t* heads);

  private:
    void lay_out(std::int64_t n_words, bool one_root, std::int64_t n_arrays, double outside);
    void place(const double* of_arcs);
    double close_sums();
    void set_goal();
    void write_marginals(double* marginals) const;
    void follow(std::int32_t* heads);

    // A span whose arcs are to be found, of one of the arrays kArcRight … kLeft.
    struct Open {
        EisnerChart::Array kind;
        std::int64_t i, w;
    };

    EisnerChart chart_{};
    Buffer<double> numbers_;
    double around_ = 0;                     // what lies outside of the rows of `numbers_`: 0 or −inf
    std::int64_t n_arrays_ = 0;             // how many of them are laid out
    std::int64_t n_words_ = 0, first_ = 0;  // the word, or the root, that is place 0 of the chart
    double partition_ = 0;                  // Z, of scores from which the best of each word is subtracted
    std::vector<double> shifts_;            // [n + 1] the best score into each word
    std::vector<double> weights_;           // [n + 1, n + 1] exp(score − best)
    std::vector<double> root_;  // [n] of the arc from the root to each place, where it has one dependent
    std::vector<double> goal_left_, goal_right_;  // [n + 1]
    std::vector<Open> open_;
};

}  // namespace crfkit
