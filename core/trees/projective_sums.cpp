#include <algorithm>
#include <cmath>

#include "base/buffer.hpp"
#include "hyperpaths/engine.hpp"
#include "hyperpaths/k_best.hpp"
#include "hyperpaths/viterbi.hpp"
#include "kernels/tree_rows.hpp"
#include "trees/label_sums.hpp"
#include "trees/part_graph.hpp"
#include "trees/second_order_sums.hpp"

namespace crfkit {
namespace {

class ProjectiveSums final : public SecondOrderSums {
  public:
    explicit ProjectiveSums(bool one_root) : one_root_(one_root) {}

    void load(std::int64_t n_words, std::span<const Arc> arcs) override {
        parts_.build(n_words, arcs, one_root_);
    }
    const TreeParts& parts() const override { return parts_; }
    double marginals(std::int64_t R, const double* scores, double* probs) override;
    void hessian_vector(std::int64_t R, const double* scores, const double* direction, double* out) override;
    ScoredTree best(std::int64_t R, const double* scores) override;
    ScoredTree minimum_risk(std::int64_t R, const double* probs) override;
    std::vector<ScoredTree> k_best(std::int64_t R, const double* scores, std::int64_t k) override;

  private:
    ScoredTree empty_tree() const {
        const auto n = static_cast<std::size_t>(parts_.n_words());
        return {0, std::vector<std::int32_t>(n), std::vector<std::int32_t>(n)};
    }

    const bool one_root_;
    PartGraph parts_;
    HyperpathEngine engine_;
    ViterbiWorkspace viterbi_;
    LabelSums labels_;
    Buffer<double> part_scores_, part_probs_, changes_, probs_, expected_;
};

double ProjectiveSums::marginals(std::int64_t R, const double* scores, double* probs) {
    const std::int64_t A = parts_.n_arcs();
    part_scores_.resize(parts_.n_parts());
    labels_.sum(A, R, scores, part_scores_.data(), probs);
    std::copy_n(scores + A * R, parts_.n_parts() - A, part_scores_.data() + A);
    parts_.set_scores(part_scores_.data());
    part_probs_.assign(parts_.n_parts(), 0.0);
    const double log_z = engine_.marginals(parts_.graph(), [&](std::int64_t edge, double prob) {
        parts_.each_part(edge, [&](std::int64_t part) { part_probs_[part] += prob; });
    });
    for (std::int64_t arc = 0; arc < A; ++arc)
        for (std::int64_t r = 0; r < R; ++r) probs[arc * R + r] *= part_probs_[arc];
    std::copy_n(part_probs_.data() + A, parts_.n_parts() - A, probs + A * R);
    return log_z;
}

// With share_r = probs_r / P(arc), the score of an arc moves by d = Σ_r share_r direction_r, its probability
// by dP(arc), and probs_r by dP(arc) share_r + P(arc) share_r (direction_r − d).
void ProjectiveSums::hessian_vector(std::int64_t R, const double* scores, const double* direction,
                                    double* out) {
    const std::int64_t A = parts_.n_arcs(), P = parts_.n_parts();
    probs_.resize(parts_.n_scores(R));
    const double* const probs = probs_.data();
    marginals(R, scores, probs_.data());
    for (std::int64_t arc = 0; arc < A; ++arc) {
        double move = 0;
        if (part_probs_[arc] > 0)
            for (std::int64_t r = 0; r < R; ++r)
                move += probs[arc * R + r] / part_probs_[arc] * direction[arc * R + r];
        part_scores_[arc] = move;
    }
    std::copy_n(direction + A * R, P - A, part_scores_.data() + A);
    changes_.assign(P, 0.0);
    engine_.hessian_vector(
        parts_.graph(),
        [&](std::int64_t edge) {
            double move = 0;
            parts_.each_part(edge, [&](std::int64_t part) { move += part_scores_[part]; });
            return move;
        },
        [&](std::int64_t edge, double change) {
            parts_.each_part(edge, [&](std::int64_t part) { changes_[part] += change; });
        });
    for (std::int64_t arc = 0; arc < A; ++arc)
        for (std::int64_t r = 0; r < R; ++r) {
            const std::int64_t at = arc * R + r;
            const double share = part_probs_[arc] > 0 ? probs[at] / part_probs_[arc] : 0.0;
            out[at] = share * changes_[arc] + probs[at] * (direction[at] - part_scores_[arc]);
        }
    std::copy_n(changes_.data() + A, P - A, out + A * R);
}

ScoredTree ProjectiveSums::best(std::int64_t R, const double* scores) {
    const std::int64_t A = parts_.n_arcs();
    part_scores_.resize(parts_.n_parts());
    for (std::int64_t arc = 0; arc < A; ++arc)
        part_scores_[arc] = scores[arc * R + tree_kernels().largest(scores + arc * R, R)];
    std::copy_n(scores + A * R, parts_.n_parts() - A, part_scores_.data() + A);
    parts_.set_scores(part_scores_.data());
    ScoredTree tree = empty_tree();
    tree.score = viterbi(parts_.graph(), viterbi_, [&](std::int64_t, std::int64_t edge) {
        parts_.each_part(edge, [&](std::int64_t part) {
            if (part >= A) return;
            const Arc arc = parts_.arcs()[part];
            tree.heads[arc.dependent - 1] = arc.head;
            tree.labels[arc.dependent - 1] =
                static_cast<std::int32_t>(tree_kernels().largest(scores + part * R, R));
        });
    });
    if (tree.score == kNever) throw NoTree("no projective tree of these arcs exists");
    return tree;
}

ScoredTree ProjectiveSums::minimum_risk(std::int64_t R, const double* probs) {
    expected_.assign(parts_.n_scores(R), 0.0);
    std::copy_n(probs, parts_.n_arcs() * R, expected_.data());
    return best(R, expected_.data());
}

// In a graph whose hyperpaths choose a label for each arc.
std::vector<ScoredTree> ProjectiveSums::k_best(std::int64_t R, const double* scores, std::int64_t k) {
    const std::int64_t A = parts_.n_arcs();
    PartGraph labelled;
    labelled.build(parts_.n_words(), parts_.arcs(), one_root_, R);
    // Parts of second order are found in the same order with labels and without.
    part_scores_.assign(labelled.n_parts(), 0.0);
    std::copy_n(scores + A * R, labelled.n_parts() - A, part_scores_.data() + A);
    labelled.set_scores(part_scores_.data(), scores);
    KBestHyperpaths paths(labelled.graph());
    std::vector<ScoredTree> found;
    while (static_cast<std::int64_t>(found.size()) < k && paths.next()) {
        ScoredTree tree = empty_tree();
        tree.score = paths.score();
        paths.each([&](std::int64_t, std::int64_t edge) {
            const std::int64_t chosen = labelled.label_of(edge);
            if (chosen < 0) return;
            const Arc arc = labelled.arcs()[chosen / R];
            tree.heads[arc.dependent - 1] = arc.head;
            tree.labels[arc.dependent - 1] = static_cast<std::int32_t>(chosen % R);
        });
        found.push_back(std::move(tree));
    }
    return found;
}

}  // namespace

std::unique_ptr<SecondOrderSums> projective_sums(bool one_root) {
    return std::make_unique<ProjectiveSums>(one_root);
}

}  // namespace crfkit
