#include "trees/projective.hpp"

#include <algorithm>

namespace crfkit {

// Labels are summed over beforehand, and share the probability of their arc afterwards:
// P(h → m, r) = P(h → m) p_r.
bool ProjectiveTrees::sum_by_chart(const ProjectiveView& tree, double* log_z,
                                   ProjectiveParts<double> marginals) {
    const auto sum = [&](const double* arcs, double* by_arc) {
        if (tree.siblings)
            return siblings_.sum({arcs, tree.siblings, tree.n_words, tree.one_root}, log_z,
                                 {by_arc, marginals.siblings, marginals.streamed});
        return eisner_.sum(arcs, tree.n_words, tree.one_root, log_z, by_arc);
    };
    if (tree.n_labels == 1) return sum(tree.scores, marginals.arcs);
    const ArcSums arcs = summed_arcs(tree);
    by_arc_.resize(arcs.scores.size());
    if (!sum(arcs.scores.data(), marginals.arcs ? by_arc_.data() : nullptr)) return false;
    for (std::size_t arc = 0; marginals.arcs && arc < arcs.scores.size(); ++arc)
        for (std::int64_t r = 0; r < tree.n_labels; ++r) {
            const std::size_t at = arc * tree.n_labels + r;
            marginals.arcs[at] = by_arc_[arc] * label_share(tree.scores[at], arcs, arc);
        }
    return true;
}

double ProjectiveTrees::log_partition(const ProjectiveView& tree) {
    double log_z = 0;
    return sum_by_chart(tree, &log_z, {nullptr, nullptr}) ? log_z : ProjectiveEngine::log_partition(tree);
}

double ProjectiveTrees::marginals(const ProjectiveView& tree, ProjectiveParts<double> marginals) {
    double log_z = 0;
    return sum_by_chart(tree, &log_z, marginals) ? log_z : ProjectiveEngine::marginals(tree, marginals);
}

// Of each arc the first best label.
ScoredTree ProjectiveTrees::best(const ProjectiveView& tree) {
    ScoredTree best = empty_tree(tree);
    const std::int64_t side = tree.side(), R = tree.n_labels;
    const double* arcs = tree.scores;
    if (R > 1) {
        by_arc_.resize(static_cast<std::size_t>(side * side));
        labels_.resize(static_cast<std::size_t>(side * side));
        for (std::int64_t arc = 0; arc < side * side; ++arc) {
            const double* const scores = tree.scores + arc * R;
            const double* const top = std::max_element(scores, scores + R);
            by_arc_[arc] = *top;
            labels_[arc] = static_cast<std::int32_t>(top - scores);
        }
        arcs = by_arc_.data();
    }
    std::int32_t* const heads = best.heads.data();
    best.score = tree.siblings ? siblings_.best({arcs, tree.siblings, tree.n_words, tree.one_root}, heads)
                               : eisner_.best(arcs, tree.n_words, tree.one_root, heads);
    if (best.score == kNever) return ProjectiveEngine::best(tree);  // which says why
    for (std::int64_t m = 1; R > 1 && m < side; ++m)
        best.labels[m - 1] = labels_[best.heads[m - 1] * side + m];
    return best;
}

}  // namespace crfkit
