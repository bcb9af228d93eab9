// The weights of the arcs into one part of a graph, ready for elimination.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/compensated_sum.hpp"
#include "trees/elimination.hpp"
#include "trees/graph.hpp"

namespace crfkit {

// The arcs of one part of a graph as weights exp(score − shift), with a shift for each dependent that makes
// its largest weight 1; where only one arc comes from the root, these are shifted once more, all by the same.
// Every tree has one arc into each word, so that the shifts add a constant to all of their scores. Scores
// that are far apart are not shifted: see Far.
class PartWeights {
  public:
    PartWeights(const TreePart& part, const ArcSums& arcs, std::int64_t n_words)
        : part_(part),
          sums_(arcs),
          arcs_(arcs.scores.data()),
          side_(n_words + 1),
          inside_(side_, 0),
          shift_(side_, 0.0) {
        for (const auto word : part.words) inside_[word] = 1;
        if (sums_.far) return;
        std::vector<double> top(side_, kNever);
        for (std::int64_t h = part.one_root ? 1 : 0; h < side_; ++h)
            if (is_head(h))
                for (const auto m : part.words) top[m] = std::max(top[m], arcs_[h * side_ + m]);
        for (const auto m : part.words)
            if (top[m] > kNever) shift_[m] = top[m];
        if (part.one_root) {
            above_ = kNever;
            for (const auto m : part.words) above_ = std::max(above_, arcs_[m] - shift_[m]);
        }
        // Not arcs_ − (shift + above): where scores are large, the sum of the shifts would be rounded.
        root_.assign(arcs_, arcs_ + side_);
        for (std::int64_t m = 1; m < side_; ++m) root_[m] -= shift_[m];
        root_shift_.assign(side_, above_);
    }

    // Whether scores are so far apart that only Far holds their weights.
    bool is_far() const { return sums_.far; }
    // Whether h may be a head of words of this part, and whether it is one of them.
    bool is_head(std::int64_t h) const {
        return h == 0 ? part_.root_is_head : is_inside(h) || !part_.one_root;
    }
    bool is_inside(std::int64_t h) const { return inside_[h] != 0; }
    std::int64_t word(std::int64_t j) const { return part_.words[j]; }
    std::int64_t n_words() const { return static_cast<std::int64_t>(part_.words.size()); }

    // exp(score − shift) of the arc h → m, with the derivative of its score.
    template <class Number>
    Number weight(std::int64_t h, std::int64_t m, const double* direction) const {
        const double moves = direction ? direction[h * side_ + m] : 0.0;
        if (sums_.far) {
            Number weight = FromScore<Number>::make(top_of(sums_, h * side_ + m), moves);
            scale(weight, sum_of(sums_, h * side_ + m));
            return weight;
        }
        const double score = h ? arcs_[h * side_ + m] - shift_[m] : root_[m] - root_shift_[m];
        return FromScore<Number>::make(score, moves);
    }

    // Fills an elimination; false where a weight is too small for a double.
    template <class Number>
    bool fill(Elimination<Number>& elimination, const double* direction) const {
        elimination.begin(n_words(), part_.one_root);
        const Filled filled = fill_rows(elimination, direction);
        if (filled.all) elimination.skip_checks();
        return filled.kept;
    }

    // What the shifts add to log Z.
    void add_shifts(Total& total) const {
        if (sums_.far) return;
        for (const auto m : part_.words) total.add(shift_[m]);
        total.add(above_);
    }

  private:
    struct Filled {
        bool kept = true, all = true;  // no weight is too small; all arcs exist
    };

    template <class Number>
    Filled fill_rows(Elimination<Number>& elimination, const double* direction) const {
        Filled filled;
        for (std::int64_t h = 0, row = 0; h < side_; ++h) {
            if (is_inside(h)) ++row;
            if (!is_head(h)) continue;
            Number* weights = elimination.weights(is_inside(h) ? row : 0);
            for (std::int64_t j = 0; j < n_words(); ++j) {
                const std::int64_t m = word(j);
                if (h == m) continue;
                if (arcs_[h * side_ + m] == kNever) {
                    filled.all = false;
                    continue;
                }
                weights[j] = weights[j] + weight<Number>(h, m, direction);
                filled.kept &= !is_faded(weights[j]);
            }
        }
        return filled;
    }

    // Doubles of a part that has all words: whole rows at once.
    Filled fill_rows(Elimination<double>& elimination, const double* direction) const {
        const std::int64_t n = n_words();
        if (n + 1 < side_) return fill_rows<double>(elimination, direction);
        Filled filled;
        for (std::int64_t h = 0; h < side_; ++h) {
            const double* arcs = (h ? arcs_ + h * side_ : root_.data()) + 1;
            double* weights = elimination.weights(h);
            tree_kernels().weigh(arcs, (h ? shift_ : root_shift_).data() + 1, n, weights);
            for (std::int64_t j = 0; j < n; ++j) {
                const bool absent = arcs[j] == kNever;
                filled.all &= !absent | (j + 1 == h);
                filled.kept &= absent | !is_faded(weights[j]);
            }
        }
        return filled;
    }

    const TreePart& part_;
    const ArcSums& sums_;
    const double* arcs_;
    std::int64_t side_;
    std::vector<char> inside_;        // [n + 1]
    std::vector<double> shift_;       // [n + 1] of each dependent
    std::vector<double> root_;        // [n + 1] scores of the arcs from the root, less that
    std::vector<double> root_shift_;  // [n + 1] by which these are shifted once more
    double above_ = 0;
};

// Runs an elimination on doubles, on wide numbers where doubles do not suffice, and on far ones where scores
// do not.
template <class Narrow, class Broad, class Farthest, class Find, class Use>
void eliminate(const PartWeights& weights, const double* direction, Find find, Use use) {
    if (weights.is_far()) {
        Elimination<Farthest> far;
        weights.fill(far, direction);
        find(far);
        return use(far);
    }
    Elimination<Narrow> narrow;
    if (weights.fill(narrow, direction) && find(narrow)) return use(narrow);
    Elimination<Broad> broad;
    weights.fill(broad, direction);
    find(broad);
    use(broad);
}

}  // namespace crfkit
