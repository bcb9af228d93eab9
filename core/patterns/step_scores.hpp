// Scores of the arcs of trellises.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/arc_model.hpp"
#include "patterns/trellis.hpp"

namespace crfkit {

// Scores of the arcs of steps, or a direction of such scores: arcs first of all by their bigram and by what
// is active on them; silent arcs score 0.
class StepScores {
  public:
    // Of all steps of a table, where arcs [A] score the same at every position; active [active sets].
    void score_all(const StepTable& table, const double* arcs, const std::vector<double>& active);
    // Of all steps of some trellises at the weights w [D]; `model` of the same layout.
    void score_weights(const Trellises& trellises, const ArcModel& model, const double* w);
    // Of the steps of one sequence, with arcs [T − 1, A] position by position.
    void score_each(const StepTable& table, std::span<const std::int32_t> steps, const double* arcs,
                    std::int64_t n_arcs, const std::vector<double>& active);
    // weights = exp(scores − maximum); 1 for silent arcs. To be called before a question that needs weights.
    void exponentiate(const StepTable& table);

    // Those of a step at place t of the sequence: one number for each of its arcs.
    const double* scores(std::int64_t t, std::int32_t step) const { return scores_.data() + first(t, step); }
    const double* weights(std::int64_t t, std::int32_t step) const {
        return weights_.data() + first(t, step);
    }
    double maximum(std::int64_t t, std::int32_t step) const { return maxima_[each_ ? t : step]; }

  private:
    std::int64_t first(std::int64_t t, std::int32_t step) const { return first_[each_ ? t : step]; }
    void score(const StepTable& table, const Step& step, const double* arcs,
               const std::vector<double>& active);

    bool each_ = false;                // by place in the sequence, not by step
    std::vector<std::int32_t> steps_;  // what the entries are about
    std::vector<std::int64_t> first_;
    std::vector<double> scores_, weights_, maxima_;
};

}  // namespace crfkit
