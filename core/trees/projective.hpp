// The questions on the projective trees of a sentence, each by the fastest backend that has an exact answer.
#pragma once

#include "trees/eisner.hpp"
#include "trees/eisner_siblings.hpp"
#include "trees/projective_engine.hpp"

namespace crfkit {

// As ProjectiveEngine, which answers what is not declared here, and where a faster backend has no exact
// answer.
class ProjectiveTrees : public ProjectiveEngine {
  public:
    double log_partition(const ProjectiveView& tree);
    double marginals(const ProjectiveView& tree, ProjectiveParts<double> marginals);
    ScoredTree best(const ProjectiveView& tree);

  private:
    bool sum_by_chart(const ProjectiveView& tree, double* log_z, ProjectiveParts<double> marginals);

    Eisner eisner_;
    EisnerSiblings siblings_;
    std::vector<double> by_arc_;  // [n + 1, n + 1] probabilities, or best scores, of arcs over their labels
    std::vector<std::int32_t> labels_;  // [n + 1, n + 1] best labels
};

}  // namespace crfkit
