#include "trees/sums.hpp"

#include <algorithm>
#include <cmath>

#include "base/compensated_sum.hpp"
#include "trees/weights.hpp"

namespace crfkit {
namespace {

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

// The probability of a label given its arc: p_r = exp(score_r − top) / Σ_r exp(score_r − top).
double label_share(double score, const ArcSums& arcs, std::size_t arc) {
    return sum_of(arcs, arc) > 0 ? std::exp(score - top_of(arcs, arc)) / sum_of(arcs, arc) : 0.0;
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
