#include "trees/second_order_scores.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/tree_rows.hpp"

namespace crfkit {

// part_scores_, and shares [arcs, R]: exp(score − log Σ_r exp(score_r)).
void SecondOrderSums::sum_labels(PartGraph& parts, std::int64_t R, const double* scores, double* shares) {
    const std::int64_t A = parts.n_arcs();
    part_scores_.resize(parts.n_parts());
    shift_.resize(R);
    for (std::int64_t arc = 0; arc < A; ++arc) {
        const double* row = scores + arc * R;
        double* out = shares + arc * R;
        const double top = row[tree_kernels().largest(row, R)];
        if (top == kNever) {
            std::fill_n(out, R, 0.0);
            part_scores_[arc] = kNever;
            continue;
        }
        std::fill_n(shift_.data(), R, top);
        tree_kernels().weigh(row, shift_.data(), R, out);
        double sum = 0;
        for (std::int64_t r = 0; r < R; ++r) sum += out[r];
        part_scores_[arc] = top + std::log(sum);
        const double inverse = 1 / sum;
        for (std::int64_t r = 0; r < R; ++r) out[r] *= inverse;
    }
    std::copy_n(scores + A * R, parts.n_parts() - A, part_scores_.data() + A);
    parts.set_scores(part_scores_.data());
}

double SecondOrderSums::log_partition(PartGraph& parts, std::int64_t R, const double* scores) {
    shares_.resize(parts.n_arcs() * R);
    sum_labels(parts, R, scores, shares_.data());
    return engine_.log_partition(parts.graph());
}

double SecondOrderSums::marginals(PartGraph& parts, std::int64_t R, const double* scores, double* probs) {
    const std::int64_t A = parts.n_arcs();
    sum_labels(parts, R, scores, probs);
    part_probs_.assign(parts.n_parts(), 0.0);
    const double log_z = engine_.marginals(parts.graph(), [&](std::int64_t edge, double prob) {
        parts.each_part(edge, [&](std::int64_t part) { part_probs_[part] += prob; });
    });
    for (std::int64_t arc = 0; arc < A; ++arc)
        for (std::int64_t r = 0; r < R; ++r) probs[arc * R + r] *= part_probs_[arc];
    std::copy_n(part_probs_.data() + A, parts.n_parts() - A, probs + A * R);
    return log_z;
}

// With share_r = probs_r / P(arc), the score of an arc moves by d = Σ_r share_r direction_r, its probability by
// dP(arc), and probs_r by dP(arc) share_r + P(arc) share_r (direction_r − d).
void SecondOrderSums::hessian_vector(const PartGraph& parts, std::int64_t R, const double* probs,
                                     const double* direction, double* out) {
    const std::int64_t A = parts.n_arcs(), P = parts.n_parts();
    part_scores_.resize(P);
    for (std::int64_t arc = 0; arc < A; ++arc) {
        double move = 0;
        if (part_probs_[arc] > 0)
            for (std::int64_t r = 0; r < R; ++r)
                move += probs[arc * R + r] / part_probs_[arc] * direction[arc * R + r];
        part_scores_[arc] = move;
    }
    std::copy_n(direction + A * R, P - A, part_scores_.data() + A);
    changes_.assign(static_cast<std::size_t>(P), 0.0);
    engine_.hessian_vector(
        parts.graph(),
        [&](std::int64_t edge) {
            double move = 0;
            parts.each_part(edge, [&](std::int64_t part) { move += part_scores_[part]; });
            return move;
        },
        [&](std::int64_t edge, double change) {
            parts.each_part(edge, [&](std::int64_t part) { changes_[part] += change; });
        });
    for (std::int64_t arc = 0; arc < A; ++arc)
        for (std::int64_t r = 0; r < R; ++r) {
            const std::int64_t at = arc * R + r;
            const double share = part_probs_[arc] > 0 ? probs[at] / part_probs_[arc] : 0.0;
            out[at] = share * changes_[arc] + probs[at] * (direction[at] - part_scores_[arc]);
        }
    std::copy_n(changes_.data() + A, P - A, out + A * R);
}

ScoredTree SecondOrderSums::best(PartGraph& parts, std::int64_t R, const double* scores) {
    const std::int64_t A = parts.n_arcs();
    part_scores_.resize(parts.n_parts());
    for (std::int64_t arc = 0; arc < A; ++arc)
        part_scores_[arc] = scores[arc * R + tree_kernels().largest(scores + arc * R, R)];
    std::copy_n(scores + A * R, parts.n_parts() - A, part_scores_.data() + A);
    parts.set_scores(part_scores_.data());
    ScoredTree tree;
    tree.heads.assign(static_cast<std::size_t>(parts.n_words()), 0);
    tree.labels.assign(tree.heads.size(), 0);
    tree.score = viterbi(parts.graph(), viterbi_, [&](std::int64_t, std::int64_t edge) {
        parts.each_part(edge, [&](std::int64_t part) {
            if (part >= A) return;
            const Arc arc = parts.arcs()[part];
            tree.heads[arc.dependent - 1] = arc.head;
            tree.labels[arc.dependent - 1] =
                static_cast<std::int32_t>(tree_kernels().largest(scores + part * R, R));
        });
    });
    if (tree.score == kNever) throw NoTree("no projective tree of these arcs exists");
    return tree;
}

}  // namespace crfkit
