#include "chain/batch.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <stdexcept>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

template <class Real>
ChainBatch<Real> make_batch(const AnyArray<Real>& states, const AnyArray<Real>& arcs,
                            const Maybe<Real>& start, const Maybe<Real>& end,
                            const Array<std::int64_t>& lengths) {
    if (states.ndim() != 3 || states.shape(2) < 1)
        throw std::invalid_argument("the states must have the shape [N, T, L]");
    const auto N = static_cast<std::int64_t>(states.shape(0)), T = static_cast<std::int64_t>(states.shape(1));
    const auto L = static_cast<std::int64_t>(states.shape(2));
    const bool own = arcs.ndim() == 3;
    check_size("arcs", arcs.size(), (own ? N : 1) * L * L);
    if (start) check_size("start", start->size(), L);
    if (end) check_size("end", end->size(), L);
    check_size("lengths", lengths.size(), N);
    for (const std::int64_t n : view(lengths))
        if (n < 0 || n > T) throw std::invalid_argument("a length is out of range");
    return {N,
            T,
            static_cast<std::int32_t>(L),
            states.data(),
            arcs.data(),
            own,
            start ? start->data() : nullptr,
            end ? end->data() : nullptr,
            lengths.data()};
}

// log Z [N], and with `marginals` P(y_t) [N, T, L] and the sums of the arcs in their own shape; else two
// empty arrays.
template <class Real>
nb::tuple expectations(const AnyArray<Real>& states, const AnyArray<Real>& arcs, const Maybe<Real>& start,
                       const Maybe<Real>& end, const Array<std::int64_t>& lengths, const Maybe<Real>& weights,
                       bool marginals, int n_threads) {
    const ChainBatch<Real> batch = make_batch<Real>(states, arcs, start, end, lengths);
    if (weights) check_size("weights", weights->size(), batch.n_chains);
    const auto N = states.shape(0), T = states.shape(1), L = states.shape(2);
    NewArray<double> log_partition({N});
    NewArray<Real> probs({marginals ? N : 0, T, L}), sums({marginals ? arcs.size() : 0});
    {
        const LockRelease release;
        batch_expectations<Real>(batch, weights ? weights->data() : nullptr, log_partition.data(),
                                 marginals ? probs.data() : nullptr, marginals ? sums.data() : nullptr,
                                 n_threads);
    }
    return nb::make_tuple(log_partition.take(), probs.take(), sums.take());
}

template <class Real>
nb::object best(const AnyArray<Real>& states, const AnyArray<Real>& arcs, const Maybe<Real>& start,
                const Maybe<Real>& end, const Array<std::int64_t>& lengths, int n_threads) {
    const ChainBatch<Real> batch = make_batch<Real>(states, arcs, start, end, lengths);
    return filled<std::int64_t>({states.shape(0), states.shape(1)},
                                [&](std::int64_t* labels) { batch_best<Real>(batch, labels, n_threads); });
}

template <class Real>
void bind(nb::module_& m) {
    m.def("chain_batch_expectations", &expectations<Real>, "states"_a.noconvert(), "arcs"_a.noconvert(),
          "start"_a.none(), "end"_a.none(), "lengths"_a, "weights"_a.none(), "marginals"_a, "n_threads"_a);
    m.def("chain_batch_best", &best<Real>, "states"_a.noconvert(), "arcs"_a.noconvert(), "start"_a.none(),
          "end"_a.none(), "lengths"_a, "n_threads"_a);
}

}  // namespace

void bind_chain_batch(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace crfkit
