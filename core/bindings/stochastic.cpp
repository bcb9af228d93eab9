#include "training/stochastic.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "training/average_gradient.hpp"
#include "training/objective.hpp"
#include "trees/objective.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

template <class Objective>
Penalty checked_penalty(const Objective& objective, const Array<double>& l1) {
    if (l1.size() != 1) check_size("l1", l1.size(), objective.n_weights());
    return {view(l1), objective.l2()};
}

template <class Objective>
double gradient_pass(Objective& objective, Changed<double> w, std::optional<Changed<double>> total,
                     const Array<double>& l1, const Array<std::int32_t>& order, const Array<double>& rates,
                     std::int64_t batch) {
    check_size("w", w.size(), objective.n_weights());
    if (total) check_size("total", total->size(), objective.n_weights());
    const Penalty penalty = checked_penalty(objective, l1);
    double loss = 0;
    const LockRelease release;
    objective.with_sequences([&](const SequenceSource& sequences) {
        GradientSteps steps(sequences, penalty);
        loss = steps.pass(w.data(), total ? total->data() : nullptr,
                          {view(order), batch, objective.n_threads}, view(rates));
    });
    return loss;
}

template <class Objective>
double adaptive_pass(Objective& objective, Changed<double> w, Changed<double> z, Changed<double> root,
                     const Array<double>& l1, const Array<std::int32_t>& order, double rate, double passes,
                     std::int64_t batch) {
    for (const Changed<double>* array : {&w, &z, &root})
        check_size("w, z or root", array->size(), objective.n_weights());
    const Penalty penalty = checked_penalty(objective, l1);
    double loss = 0;
    const LockRelease release;
    objective.with_sequences([&](const SequenceSource& sequences) {
        AdaptiveSteps steps(sequences, penalty, rate, passes);
        loss = steps.pass(w.data(), z.data(), root.data(), {view(order), batch, objective.n_threads});
    });
    return loss;
}

template <class Objective>
nb::object residual_places_of(Objective& objective) {
    std::vector<std::int64_t> places;
    {
        const LockRelease release;
        objective.with_sequences([&](const SequenceSource& sequences) {
            places = residual_places(sequences, objective.n_threads);
        });
    }
    NewArray<std::int64_t> out({places.size()});
    std::copy(places.begin(), places.end(), out.data());
    return out.take();
}

template <class Objective>
std::int64_t average_pass(Objective& objective, Changed<double> w, Changed<double> slopes,
                          Changed<double> residuals, Changed<double> visits,
                          const Array<std::int64_t>& places, const Array<std::int32_t>& order,
                          const AnyArray<double>& uniforms) {
    static_assert(sizeof(Visit) == 4 * sizeof(double));
    check_size("w", w.size(), objective.n_weights());
    check_size("slopes", slopes.size(), objective.n_weights());
    std::int64_t n_losses = 0;
    const LockRelease release;
    objective.with_sequences([&](const SequenceSource& sequences) {
        const std::int64_t n = sequences.n_sequences();
        check_size("visits", visits.size(), 4 * n);
        check_size("places", places.size(), n + 1);
        check_size("residuals", residuals.size(), places.data()[n]);
        AverageGradient steps(sequences, objective.l2(), view(places), w.data(), slopes.data(),
                              residuals.data(),
                              {reinterpret_cast<Visit*>(visits.data()), static_cast<std::size_t>(n)});
        n_losses = steps.pass(view(order), view(uniforms));
    });
    return n_losses;
}

template <class Objective>
void bind_passes(nb::module_& m) {
    m.def("gradient_pass", gradient_pass<Objective>, "objective"_a, "w"_a, "total"_a.none(), "l1"_a,
          "order"_a, "rates"_a, "batch"_a);
    m.def("adaptive_pass", adaptive_pass<Objective>, "objective"_a, "w"_a, "z"_a, "root"_a, "l1"_a, "order"_a,
          "rate"_a, "passes"_a, "batch"_a);
    m.def("residual_places", residual_places_of<Objective>, "objective"_a);
    m.def("average_pass", average_pass<Objective>, "objective"_a, "w"_a, "slopes"_a, "residuals"_a,
          "visits"_a, "places"_a, "order"_a, "uniforms"_a);
}

}  // namespace

void bind_stochastic(nb::module_& m) {
    bind_passes<Objective>(m);
    bind_passes<TreeObjective>(m);
}

}  // namespace crfkit
