#include "chain/batch.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <stdexcept>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"
#include "bindings/span_arrays.hpp"

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

nb::tuple spans(const AnyArray<double>& states, const AnyArray<double>& arcs, const Maybe<double>& start,
                const Maybe<double>& end, const Array<std::int64_t>& lengths, const SpanLabels& labels,
                double threshold, int n_threads) {
    const ChainBatch<double> batch = make_batch<double>(states, arcs, start, end, lengths);
    return as_arrays(unlocked([&] { return batch_spans(batch, labels, threshold, n_threads); }));
}

// Of the spans (chain, start, end, type).
nb::object span_probabilities(const AnyArray<double>& states, const AnyArray<double>& arcs,
                              const Maybe<double>& start, const Maybe<double>& end,
                              const Array<std::int64_t>& lengths, const SpanLabels& labels,
                              const Array<std::int64_t>& rows, const Array<std::int64_t>& starts,
                              const Array<std::int64_t>& ends, const Array<std::int64_t>& types,
                              int n_threads) {
    const ChainBatch<double> batch = make_batch<double>(states, arcs, start, end, lengths);
    const auto n = static_cast<std::int64_t>(rows.size());
    check_size("starts", starts.size(), n);
    check_size("ends", ends.size(), n);
    check_size("types", types.size(), n);
    std::vector<std::vector<ScoredSpan>> given(states.shape(0));
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t row = rows.data()[i], from = starts.data()[i], to = ends.data()[i],
                           type = types.data()[i];
        if (row < 0 || row >= batch.n_chains || from < 0 || from >= to || to > lengths.data()[row] ||
            type < 0 || type >= labels.n_types())
            throw std::invalid_argument("a span is out of range");
        given[row].push_back({from, to, static_cast<std::int32_t>(type), 0});
    }
    return filled<double>({rows.size()}, [&](double* out) {
        batch_span_probabilities(batch, labels, given, n_threads);
        std::vector<std::size_t> next(given.size());
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t row = rows.data()[i];
            out[i] = given[row][next[row]++].probability;
        }
    });
}

nb::object n_spans(const AnyArray<double>& states, const AnyArray<double>& arcs, const Maybe<double>& start,
                   const Maybe<double>& end, const Array<std::int64_t>& lengths, const SpanLabels& labels,
                   int n_threads) {
    const ChainBatch<double> batch = make_batch<double>(states, arcs, start, end, lengths);
    return filled<double>({states.shape(0)},
                          [&](double* out) { batch_n_spans(batch, labels, out, n_threads); });
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
    m.def("chain_batch_spans", &spans, "states"_a.noconvert(), "arcs"_a.noconvert(), "start"_a.none(),
          "end"_a.none(), "lengths"_a, "labels"_a, "threshold"_a, "n_threads"_a);
    m.def("chain_batch_span_probabilities", &span_probabilities, "states"_a.noconvert(), "arcs"_a.noconvert(),
          "start"_a.none(), "end"_a.none(), "lengths"_a, "labels"_a, "rows"_a, "starts"_a, "ends"_a,
          "types"_a, "n_threads"_a);
    m.def("chain_batch_n_spans", &n_spans, "states"_a.noconvert(), "arcs"_a.noconvert(), "start"_a.none(),
          "end"_a.none(), "lengths"_a, "labels"_a, "n_threads"_a);
}

}  // namespace crfkit
