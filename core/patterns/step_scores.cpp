#include "patterns/step_scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace crfkit {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

}  // namespace

void StepScores::score(const StepTable& table, const Step& step, const double* arcs,
                       const std::vector<double>& active) {
    first_.push_back(static_cast<std::int64_t>(scores_.size()));
    for (std::int64_t e = step.first_arc; e < step.first_arc + step.n_arcs; ++e)
        scores_.push_back((table.arc[e] >= 0 ? arcs[table.arc[e]] : 0.0) +
                          (table.active[e] >= 0 ? active[table.active[e]] : 0.0));
}

void StepScores::score_all(const StepTable& table, const double* arcs, const std::vector<double>& active) {
    each_ = false;
    scores_.clear();
    weights_.clear();
    first_.clear();
    steps_.resize(table.steps.size());
    for (std::size_t s = 0; s < table.steps.size(); ++s) {
        steps_[s] = static_cast<std::int32_t>(s);
        score(table, table.steps[s], arcs, active);
    }
}

void StepScores::score_weights(const Trellises& trellises, const ArcModel& model, const double* w) {
    ArcTables tables;
    std::vector<double> active;
    model.score(w, tables);
    trellises.table.score_active(w + trellises.first_weight, active);
    score_all(trellises.table, tables.arcs.scores.data(), active);
}

void StepScores::score_each(const StepTable& table, std::span<const std::int32_t> steps, const double* arcs,
                            std::int64_t n_arcs, const std::vector<double>& active) {
    each_ = true;
    scores_.clear();
    weights_.clear();
    first_.clear();
    steps_.assign(steps.begin(), steps.end());
    for (std::size_t t = 0; t < steps.size(); ++t)  // the arcs of the first and the last step have no number
        score(table, table.steps[steps[t]], arcs + (t > 0 ? t - 1 : 0) * n_arcs, active);
}

void StepScores::exponentiate(const StepTable& table) {
    weights_.resize(scores_.size());
    maxima_.resize(steps_.size());
    for (std::size_t k = 0; k < steps_.size(); ++k) {
        const Step& step = table.steps[steps_[k]];
        const double* scores = scores_.data() + first_[k];
        double* weights = weights_.data() + first_[k];
        double maximum = kNever;
        for (std::int64_t e = 0; e < step.n_arcs; ++e)
            if (!table.silent(step, e)) maximum = std::max(maximum, scores[e]);
        if (maximum == kNever) maximum = 0;
        for (std::int64_t e = 0; e < step.n_arcs; ++e)
            weights[e] = table.silent(step, e) ? 1.0 : std::exp(scores[e] - maximum);
        maxima_[k] = maximum;
    }
}

}  // namespace crfkit
