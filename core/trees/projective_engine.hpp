// The questions on the projective trees of a sentence, by the engine of hyperpaths.
#pragma once

#include <cstdint>
#include <vector>

#include "hyperpaths/engine.hpp"
#include "hyperpaths/viterbi.hpp"
#include "trees/k_best.hpp"
#include "trees/projective_graph.hpp"

namespace crfkit {

// All heads and labels 0.
ScoredTree empty_tree(const TreeView& tree);

// Answers with memory that is reused from sentence to sentence; one for each thread.
class ProjectiveEngine {
  public:
    // log Z; −inf where no tree exists. A sentence without words has one tree, the empty one.
    double log_partition(const ProjectiveView& tree);

    // Those below throw NoTree.

    // log Z; the probability of each part into `marginals`.
    double marginals(const ProjectiveView& tree, ProjectiveParts<double> marginals);

    // ∇² log Z · direction; direction is finite.
    void hessian_vector(const ProjectiveView& tree, ProjectiveParts<const double> direction,
                        ProjectiveParts<double> hessian_vector);

    // −Σ_y p(y) log p(y)
    double entropy(const ProjectiveView& tree);

    // The best tree, always the same one among equals.
    ScoredTree best(const ProjectiveView& tree);

    // The k best trees, best first, all distinct; fewer when fewer exist, none when there is none.
    std::vector<ScoredTree> k_best(const ProjectiveView& tree, std::int64_t k);

    // Samples from uniform numbers [n_samples, n, kUniforms] in [0, 1): heads and labels [n_samples, n].
    static constexpr std::int64_t kUniforms = 4;
    void sample(const ProjectiveView& tree, std::int64_t n_samples, const double* uniforms,
                std::int32_t* heads, std::int32_t* labels);

  private:
    ProjectiveGraph graph_;
    HyperpathEngine engine_;
    ViterbiWorkspace viterbi_;
};

}  // namespace crfkit
