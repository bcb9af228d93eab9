#include "patterns/step_weights.hpp"

#include <algorithm>
#include <limits>

#include "base/threads.hpp"

namespace crfkit {

template <class Real>
StepWeights<Real>::StepWeights(const StepTable& table, const Kernels<Real>& kernels)
    : table_(table),
      kernels_(kernels),
      reached_(static_cast<std::size_t>(table.n_arcs())),
      silent_(reached_.size()) {
    for (const Step& step : table_.steps)
        for (std::int64_t k = step.first_arc; k < step.first_arc + step.n_arcs; ++k) {
            reached_[k] = table_.destination[step.first_arc + table_.out_arc[k]] - step.n_before;
            silent_[k] = table_.silent(step, k - step.first_arc);
        }
}

template <class Real>
void StepWeights<Real>::set(const StepScores& given, int n_threads) {
    const std::int64_t n_arcs = table_.n_arcs(), lanes = kernels_.lanes;
    weight_.assign((n_arcs + lanes - 1) / lanes * lanes, 0);
    out_weight_.resize(n_arcs);
    maxima_.resize(table_.steps.size());
    wide_.resize(table_.steps.size());
    const auto n_steps = static_cast<std::int64_t>(table_.steps.size());
    parallel_for(n_steps, n_threads, [&](std::int64_t i, int) {
        const Step& step = table_.steps[i];
        const double* scores = given.scores(0, static_cast<std::int32_t>(i));
        double top = -std::numeric_limits<double>::infinity(), bottom = -top;
        for (std::int64_t e = 0; e < step.n_arcs; ++e) {
            if (silent_[step.first_arc + e]) continue;
            top = std::max(top, scores[e]);
            bottom = std::min(bottom, scores[e]);
        }
        maxima_[i] = top;
        wide_[i] = !(top - bottom <= -static_cast<double>(kLowest<Real>));
        for (std::int64_t e = 0; e < step.n_arcs; ++e)
            weight_[step.first_arc + e] =
                silent_[step.first_arc + e] ? Real(0) : static_cast<Real>(scores[e] - top);
    });
    kernels_.exp_shifted(weight_.data(), Real(0), weight_.data(), weight_.size());
    parallel_for(n_steps, n_threads, [&](std::int64_t i, int) {
        const Step& step = table_.steps[i];
        for (std::int64_t k = step.first_arc; k < step.first_arc + step.n_arcs; ++k)
            out_weight_[k] = weight_[step.first_arc + table_.out_arc[k]];
    });
}

template <class Real>
StepArcs<Real> StepWeights<Real>::of(const Step& step) const {
    const std::int64_t arc = step.first_arc;
    const auto labels = [&](std::int32_t level) -> const std::int32_t* {
        const auto found = table_.labels(level);
        return found[0] < 0 ? nullptr : found.data();
    };
    return {step.n_before,
            step.n_pools,
            step.n_after,
            step.silent_out ? 0 : step.n_pools,
            table_.in_ptr.data() + step.first_in,
            table_.source.data() + arc,
            weight_.data() + arc,
            table_.out_ptr.data() + step.first_out,
            reached_.data() + arc,
            out_weight_.data() + arc,
            labels(step.before),
            labels(step.after)};
}

template class StepWeights<float>;
template class StepWeights<double>;

}  // namespace crfkit
