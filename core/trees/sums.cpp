#include "trees/sums.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/compensated_sum.hpp"
#include "trees/elimination.hpp"

namespace crfkit {
namespace {

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

// log Z: a sum of shifts, of logarithms, and of scores that are far apart.
struct LogTotal {
    Total near;
    ExactSum far;

    // Adds log Π pivots.
    template <class Number>
    void add_pivots(const std::vector<Number>& pivots) {
        Wide product{1.0, 0};
        for (const Number& pivot : pivots) product = product * widened(pivot);
        near.add(log_of(product));
    }
    void add_pivots(const std::vector<Far>& pivots) {
        Wide product{1.0, 0};
        for (const Far& pivot : pivots) {
            product = product * pivot.part;
            far += pivot.log;
        }
        near.add(log_of(product));
    }
    double value() const { return near.value() + far.value(); }
};

// The marginals of the arcs into the words of a part, as numbers of the elimination: write(h, m, P(h → m)).
//   P(h → m) = a_hm ∂ log Z / ∂ a_hm = a_hm e_hm / rho^m      from a word of the part
//   P(h → m) = a_hm / rho^m                                   from outside, which stands for the root
template <class Number, class Write>
void write_gradient(const PartWeights& weights, const Elimination<Number>& found, const double* direction,
                    std::int64_t side, Write write) {
    const std::int64_t n = weights.n_words();
    const Number one = FromScore<Number>::make(0.0, 0.0);
    std::vector<Number> reach(n);  // 1 / rho^j
    for (std::int64_t j = 0; j < n; ++j) reach[j] = one / found.arrival(j);
    for (std::int64_t h = 0, row = 0; h < side; ++h) {
        if (weights.is_inside(h)) {
            const Number *escapes = found.escapes(row), *from = found.weights(++row);
            for (std::int64_t j = 0; j < n; ++j)  // 0 for an arc from a word to itself
                write(h, weights.word(j), escapes[j] * reach[j] * from[j]);
        } else if (weights.is_head(h)) {
            for (std::int64_t j = 0; j < n; ++j) {
                const std::int64_t m = weights.word(j);
                write(h, m, reach[j] * weights.template weight<Number>(h, m, direction));
            }
        }
    }
}

// Calls function(weights) for each part of the graph. Parts are independent: log Z = Σ log Z(part).
template <class Function>
void each_part(const TreeView& tree, const ArcSums& arcs, const Function& function) {
    for (const TreePart& part : parts_of(arcs.scores.data(), tree.n_words, tree.one_root))
        function(PartWeights(part, arcs, tree.n_words));
}

// log Z and the marginals of arcs [n + 1, n + 1].
double arc_marginals(const TreeView& tree, const ArcSums& arcs, double* marginals) {
    const std::int64_t side = tree.side();
    std::fill(marginals, marginals + side * side, 0.0);
    LogTotal total;
    each_part(tree, arcs, [&](const PartWeights& weights) {
        weights.add_shifts(total.near);
        eliminate<double, Wide, Far>(
            weights, nullptr, [](auto& elimination) { return elimination.find_all(); },
            [&](const auto& found) {
                total.add_pivots(found.pivots());
                write_gradient(weights, found, nullptr, side, [&](std::int64_t h, std::int64_t m, auto p) {
                    marginals[h * side + m] = std::min(to_double(p), 1.0);
                });
            });
    });
    return total.value();
}

}  // namespace

// log Z(part) = Σ of the shifts of the scores + Σ_k log d_k.
double tree_log_partition(const TreeView& tree) try {
    LogTotal total;
    each_part(tree, summed_arcs(tree), [&](const PartWeights& weights) {
        weights.add_shifts(total.near);
        eliminate<double, Wide, Far>(
            weights, nullptr, [](auto& elimination) { return elimination.find_pivots(); },
            [&](const auto& found) { total.add_pivots(found.pivots()); });
    });
    return total.value();
} catch (const NoTree&) {
    return kNever;
}

// P(h → m, r) = P(h → m) p_r.
double tree_marginals(const TreeView& tree, double* marginals) {
    const ArcSums arcs = summed_arcs(tree);
    if (tree.n_labels == 1) return arc_marginals(tree, arcs, marginals);
    std::vector<double> by_arc(arcs.scores.size());
    const double log_z = arc_marginals(tree, arcs, by_arc.data());
    for (std::size_t arc = 0; arc < arcs.scores.size(); ++arc)
        for (std::int64_t r = 0; r < tree.n_labels; ++r) {
            const std::size_t at = arc * tree.n_labels + r;
            marginals[at] = by_arc[arc] * label_share(tree.scores[at], arcs, arc);
        }
    return log_z;
}

// With p_r the probability of label r given its arc, the score of the arc moves by d = Σ_r p_r direction_r,
// and P(arc, r) = P(arc) p_r by p_r (dP(arc) + P(arc) (direction_r − d)). dP(arc) comes from the elimination
// over numbers that carry the derivative of their logarithm along, g: dP = P g.
void tree_hessian_vector(const TreeView& tree, const double* direction, double* hessian_vector) {
    const std::int64_t side = tree.side(), R = tree.n_labels;
    const ArcSums arcs = summed_arcs(tree);
    std::vector<double> moved(arcs.scores.size(), 0.0), marginals(arcs.scores.size(), 0.0),
        changes(arcs.scores.size(), 0.0);
    for (std::size_t arc = 0; arc < arcs.scores.size(); ++arc)
        for (std::int64_t r = 0; r < R; ++r)
            if (const double share = label_share(tree.scores[arc * R + r], arcs, arc); share > 0)
                moved[arc] += share * direction[arc * R + r];
    each_part(tree, arcs, [&](const PartWeights& weights) {
        eliminate<Graded<double, false>, Graded<Wide, false>, Graded<Far, false>>(
            weights, moved.data(), [](auto& elimination) { return elimination.find_all(); },
            [&](const auto& found) {
                write_gradient(weights, found, moved.data(), side,
                               [&](std::int64_t h, std::int64_t m, auto p) {
                                   marginals[h * side + m] = to_double(p.value);
                                   changes[h * side + m] = to_double(p.value) * p.g;
                               });
            });
    });
    for (std::size_t arc = 0; arc < arcs.scores.size(); ++arc)
        for (std::int64_t r = 0; r < R; ++r) {
            const std::size_t at = arc * R + r;
            const double share = label_share(tree.scores[at], arcs, arc);
            hessian_vector[at] =
                share > 0 ? share * (changes[arc] + marginals[arc] * (direction[at] - moved[arc])) : 0.0;
        }
}

// H = log Z − E[score]. By the chain rule that is the entropy of the heads, Σ_k g(d_k) of an elimination
// whose numbers carry the entropy of their terms along, and Σ_arcs P(arc) · (−Σ_r p_r log p_r) of the labels.
double tree_entropy(const TreeView& tree) {
    const ArcSums arcs = summed_arcs(tree);
    double entropy = 0;
    each_part(tree, arcs, [&](const PartWeights& weights) {
        eliminate<Graded<double, true>, Graded<Wide, true>, Graded<Far, true>>(
            weights, nullptr, [](auto& elimination) { return elimination.find_pivots(); },
            [&](const auto& found) {
                for (const auto& pivot : found.pivots()) entropy += pivot.g;
            });
    });
    if (tree.n_labels > 1) {
        std::vector<double> marginals(arcs.scores.size());
        arc_marginals(tree, arcs, marginals.data());
        for (std::size_t arc = 0; arc < arcs.scores.size(); ++arc) {
            if (!(marginals[arc] > 0)) continue;
            for (std::int64_t r = 0; r < tree.n_labels; ++r) {
                const double log_share =
                    tree.scores[arc * tree.n_labels + r] - top_of(arcs, arc) - std::log(sum_of(arcs, arc));
                if (log_share > kNever) entropy -= marginals[arc] * std::exp(log_share) * log_share;
            }
        }
    }
    return std::max(entropy, 0.0);
}

}  // namespace crfkit
