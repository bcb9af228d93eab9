// Stochastic training methods: rules, and run(objective, rule, …) for one pass of any of them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "training/adagrad_rule.hpp"
#include "training/dropout.hpp"
#include "training/mistake_rules.hpp"
#include "training/objective.hpp"
#include "training/online.hpp"
#include "training/sag_rule.hpp"
#include "training/sgd_rule.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

using StateArrays = std::map<std::string, Changed<double>>;

RuleState state_of(std::int64_t n_weights, const StateArrays& given) {
    std::map<std::string, std::span<double>> arrays;
    for (const auto& [name, array] : given) arrays[name] = {array.data(), array.size()};
    return {n_weights, std::move(arrays)};
}

// One pass by any rule: along the gradients of single sequences, or after mistakes.
double run(Objective& objective, const StepRule& rule, const Array<double>& l1, const StateArrays& arrays,
           const Array<std::int32_t>& order, const Dropout* dropout) {
    if (l1.size() != 1) check_size("l1", l1.size(), objective.n_weights());
    const RuleState state = state_of(objective.n_weights(), arrays);
    double loss = 0;
    const LockRelease release;
    if (const auto* along = dynamic_cast<const GradientRule*>(&rule))
        objective.with_sequences([&](const SequenceSource& all) {
            const auto some = dropout ? drop_features(all, *dropout, objective.n_weights()) : nullptr;
            const SequenceSource& sequences = some ? *some : all;
            loss =
                along->run(sequences, {view(l1), objective.l2()}, state, view(order), objective.n_threads());
        });
    else
        objective.with_mistakes([&](Online& online) {
            loss = online.run(dynamic_cast<const MistakeRule&>(rule), state, view(order));
        });
    return loss;
}

std::int64_t n_residuals(Objective& objective) {
    std::int64_t n = 0;
    const LockRelease release;
    objective.with_sequences(
        [&](const SequenceSource& sequences) { n = sequences.residual_ptr(objective.n_threads()).back(); });
    return n;
}

void bind_rules(nb::module_& m) {
    nb::class_<StepRule> rule(m, "StepRule");
    nb::class_<GradientRule, StepRule> gradient(m, "GradientRule");
    nb::class_<SGDRule, GradientRule>(m, "SGDRule")
        .def(
            "__init__",
            [](SGDRule* self, const Array<double>& rates, std::int64_t batch) {
                new (self) SGDRule(copy(view(rates)), batch);
            },
            "rates"_a, "batch"_a);
    nb::class_<AdaGradRule, GradientRule>(m, "AdaGradRule")
        .def(nb::init<double, double, std::int64_t>(), "rate"_a, "passes"_a, "batch"_a);
    nb::class_<SAGRule, GradientRule>(m, "SAGRule")
        .def(
            "__init__",
            [](SAGRule* self, const Array<double>& uniforms) { new (self) SAGRule(copy(view(uniforms))); },
            "uniforms"_a);
    nb::class_<MistakeRule, StepRule> mistake(m, "MistakeRule");
    nb::class_<PerceptronRule, MistakeRule>(m, "PerceptronRule").def(nb::init<>());
    nb::class_<PassiveAggressiveRule, MistakeRule>(m, "PassiveAggressiveRule")
        .def(nb::init<int, double, bool>(), "variant"_a, "aggressiveness"_a, "error_sensitive"_a);
    nb::class_<AROWRule, MistakeRule>(m, "AROWRule").def(nb::init<double>(), "gamma"_a);
}

}  // namespace

void bind_step_rules(nb::module_& m) {
    bind_rules(m);
    // The arrays of the state are changed in place, so none may be converted.
    nb::class_<Dropout>(m, "Dropout")
        .def(
            "__init__",
            [](Dropout* self, const Array<std::int32_t>& features, double rate, std::uint64_t seed) {
                new (self) Dropout{copy(view(features)), rate, seed};
            },
            "features"_a, "rate"_a, "seed"_a);
    m.def("run", &run, "objective"_a, "rule"_a, "l1"_a, "state"_a.noconvert(), "order"_a,
          "dropout"_a.none() = nullptr);
    m.def("n_residuals", n_residuals, "objective"_a);
}

}  // namespace crfkit
