#include "trees/projective_engine.hpp"

#include <algorithm>
#include <string>

#include "hyperpaths/k_best.hpp"

namespace crfkit {
namespace {

// Why there is no projective tree: there is no tree at all, or none of these is projective.
[[noreturn]] void refuse(const ProjectiveView& tree) {
    parts_of(summed_arcs(tree).scores.data(), tree.n_words, tree.one_root);  // throws NoTree if there is none
    throw NoTree(std::string("no projective tree") + (tree.one_root ? " with a single root" : "") +
                 " exists: every tree has crossing arcs" +
                 (tree.siblings ? " or siblings of score −inf." : "."));
}

void check_possible(const ProjectiveView& tree, double log_partition) {
    if (log_partition == kNever) refuse(tree);
}

// Passes a number of a part on to where it belongs; the sum over all uses of an edge, which are one.
auto into(const ProjectiveView& tree, ProjectiveParts<double> out) {
    std::fill_n(out.arcs, tree.size(), 0.0);
    if (tree.siblings) std::fill_n(out.siblings, tree.n_siblings(), 0.0);
    return
        [n = tree.size(), out](std::int64_t e, double x) { (e < n ? out.arcs[e] : out.siblings[e - n]) = x; };
}

// Reads the heads and labels of a tree from the numbers of its edges.
class TreeReader {
  public:
    TreeReader(const ProjectiveView& tree, std::int32_t* heads, std::int32_t* labels)
        : side_(tree.side()),
          n_labels_(tree.n_labels),
          n_arcs_(tree.size()),
          heads_(heads),
          labels_(labels) {}

    void operator()(std::int64_t, std::int64_t e) const {
        if (e < 0 || e >= n_arcs_) return;
        const std::int64_t arc = e / n_labels_, word = arc % side_ - 1;
        heads_[word] = static_cast<std::int32_t>(arc / side_);
        labels_[word] = static_cast<std::int32_t>(e % n_labels_);
    }

  private:
    std::int64_t side_, n_labels_, n_arcs_;
    std::int32_t *heads_, *labels_;
};

}  // namespace

ScoredTree empty_tree(const TreeView& tree) {
    const std::vector<std::int32_t> zeros(static_cast<std::size_t>(tree.n_words));
    return {0.0, zeros, zeros};
}

double ProjectiveEngine::log_partition(const ProjectiveView& tree) {
    graph_.set(tree, true);
    return engine_.log_partition(graph_);
}

double ProjectiveEngine::marginals(const ProjectiveView& tree, ProjectiveParts<double> marginals) {
    graph_.set(tree, true);
    const double log_z = engine_.marginals(graph_, into(tree, marginals));
    check_possible(tree, log_z);
    return log_z;
}

void ProjectiveEngine::hessian_vector(const ProjectiveView& tree, ProjectiveParts<const double> direction,
                                      ProjectiveParts<double> hessian_vector) {
    graph_.set(tree, true);
    check_possible(tree, engine_.marginals(graph_, [](std::int64_t, double) {}));
    const std::int64_t n = tree.size();
    engine_.hessian_vector(
        graph_, [&](std::int64_t e) { return e < n ? direction.arcs[e] : direction.siblings[e - n]; },
        into(tree, hessian_vector));
}

double ProjectiveEngine::entropy(const ProjectiveView& tree) {
    graph_.set(tree, true);
    check_possible(tree, engine_.marginals(graph_, [](std::int64_t, double) {}));
    return engine_.entropy(graph_);
}

ScoredTree ProjectiveEngine::best(const ProjectiveView& tree) {
    graph_.set(tree, false);
    ScoredTree best = empty_tree(tree);
    best.score = viterbi(graph_, viterbi_, TreeReader(tree, best.heads.data(), best.labels.data()));
    check_possible(tree, best.score);
    return best;
}

void ProjectiveEngine::sample(const ProjectiveView& tree, std::int64_t n_samples, const double* uniforms,
                              std::int32_t* heads, std::int32_t* labels) {
    graph_.set(tree, true);
    check_possible(tree, engine_.log_partition(graph_));
    Pace pace;
    for (std::int64_t s = 0; s < n_samples; ++s) {
        pace.work(16 * tree.n_words * tree.n_words);  // spans that are split, each at up to n places
        const std::int64_t at = s * tree.n_words;
        const double* next = uniforms + kUniforms * at;
        engine_.sample(graph_, [&] { return *next++; }, TreeReader(tree, heads + at, labels + at));
    }
}

std::vector<ScoredTree> ProjectiveEngine::k_best(const ProjectiveView& tree, std::int64_t k) {
    graph_.set(tree, false);
    KBestHyperpaths paths(graph_);
    std::vector<ScoredTree> found;
    while (static_cast<std::int64_t>(found.size()) < k && paths.next()) {
        found.push_back(empty_tree(tree));
        found.back().score = paths.score();
        paths.each(TreeReader(tree, found.back().heads.data(), found.back().labels.data()));
    }
    return found;
}

}  // namespace crfkit
