#include "training/mistake_rules.hpp"

#include <algorithm>
#include <cmath>

namespace crfkit {

double Mistake::deficit() const {
    double gain = 0;  // w·d
    difference.each([&](std::int64_t i, double count) { gain += w[i] * count; });
    return std::max(0.0, -gain);  // rounding may turn ties round
}

void Mistake::move(double step, std::span<double> weighted_steps) const {
    const bool averaged = !weighted_steps.empty();
    difference.each([&](std::int64_t i, double count) {
        w[i] += step * count;
        if (averaged) weighted_steps[i] += (time + 1) * (step * count);
    });
}

std::span<double> MistakeRule::beside(const RuleState& state) const {
    return state.has("weighted_steps") ? state.array("weighted_steps") : std::span<double>{};
}

double PerceptronRule::step(const Mistake& mistake, std::span<double> weighted_steps) const {
    const double loss = mistake.deficit();
    mistake.move(mistake.weight, weighted_steps);
    return loss;
}

double PassiveAggressiveRule::step(const Mistake& mistake, std::span<double> weighted_steps) const {
    const double loss = mistake.deficit() + (error_sensitive_ ? std::sqrt(mistake.n_wrong) : 1.0);
    double squares = 0;  // |d|²
    mistake.difference.each([&](std::int64_t, double count) { squares += count * count; });
    if (squares == 0) return loss;  // both outputs have the same features: no weight can tell them apart
    const double most = mistake.weight * aggressiveness_;  // C
    mistake.move(variant_ == 2   ? loss / (squares + 0.5 / most)
                 : variant_ == 1 ? std::min(most, loss / squares)
                                 : loss / squares,
                 weighted_steps);
    return loss;
}

double AROWRule::step(const Mistake& mistake, std::span<double> variances) const {
    const double loss = mistake.deficit() + mistake.n_wrong, r = gamma_ / mistake.weight;
    double spread = 0;  // Σ v d²
    mistake.difference.each([&](std::int64_t i, double count) { spread += variances[i] * count * count; });
    const double step = loss / (spread + r), per_count = 1 / r;
    mistake.difference.each([&](std::int64_t i, double count) {
        double& variance = variances[i];
        mistake.w[i] += step * variance * count;
        variance = 1 / (1 / variance + per_count * count * count);
    });
    return loss;
}

}  // namespace crfkit
