// How the weights of arcs score the arcs that exist: one by one, or through facets of their labels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/bigrams.hpp"
#include "data/layout.hpp"

namespace crfkit {

// The scores of all listed arcs at the current weights.
struct ArcScores {
    std::vector<double> scores;   // [A]
    std::vector<double> weights;  // [A] exp(score − maximum)
    double maximum = 0;
    double unlisted = 0;  // exp(0 − maximum) if unlisted arcs exist, else 0

    // To be called when `scores` is filled in.
    void exponentiate(bool soft);
};

// Scores of listed arcs, and of labels that come first or last; or a direction of such scores.
struct ArcTables {
    ArcScores arcs;                  // [A]
    std::vector<double> start, end;  // [L]
};

// Depends on the layout alone. Letters: A listed arcs, L labels.
class ArcModel {
  public:
    explicit ArcModel(const Layout& layout);

    // Φ w, with w [D].
    void score(const double* w, ArcTables& tables) const;
    // out [D] += Φᵀ r, with r given for listed arcs, first and last labels.
    void add_gradient(const std::vector<double>& arcs, const std::vector<double>& start,
                      const std::vector<double>& end, double* out) const;

    const Bigrams bigrams;

    // The weights that score listed arc k, or label b when it comes first or last: numbers in w [D].
    std::span<const std::int64_t> of_arc(std::int32_t k) const { return arcs_.of(k); }
    std::span<const std::int64_t> of_start(std::int32_t b) const { return start_.of(b); }
    std::span<const std::int64_t> of_end(std::int32_t b) const { return end_.of(b); }

  private:
    // Lists of weights.
    struct Lists {
        std::vector<std::int64_t> ptr, ids;
        std::span<const std::int64_t> of(std::int32_t i) const {
            return std::span(ids).subspan(ptr[i], ptr[i + 1] - ptr[i]);
        }
        // Σ of the weights of each list.
        void sum(const double* w, std::vector<double>& sums) const;
        // Adds the number of each list to all its weights.
        void spread(const std::vector<double>& numbers, double* w) const;
    };
    // Lists from pairs (list, weight) that `each` gives to what it is called with, twice the same.
    template <class Each>
    static Lists lists_of(std::int64_t n_lists, const Each& each);

    Lists arcs_, start_, end_;
};

}  // namespace crfkit
