#include "segments/segment_batch.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <limits>
#include <stdexcept>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/lock_release.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace crfkit {
namespace {

using Scores = AnyArray<double>;
using MaybeScores = std::optional<Scores>;

const double* pointer(const char* name, const MaybeScores& scores, std::int64_t size) {
    if (!scores) return nullptr;
    check_size(name, scores->size(), size);
    return scores->data();
}

SegmentBatch make_batch(const Scores& states, const Scores& lengths, const Scores& transitions,
                        const MaybeScores& start, const MaybeScores& end, const MaybeScores& first,
                        const MaybeScores& last, const MaybeScores& segments,
                        const Array<std::int64_t>& sequence_sizes) {
    if (states.ndim() != 3 || states.shape(2) < 1)
        throw std::invalid_argument("the states must have the shape [N, T, L]");
    if (lengths.ndim() != 2 || lengths.shape(0) < 1)
        throw std::invalid_argument("the lengths must have the shape [K, L]");
    const auto N = static_cast<std::int64_t>(states.shape(0)), T = static_cast<std::int64_t>(states.shape(1)),
               L = static_cast<std::int64_t>(states.shape(2)),
               K = static_cast<std::int64_t>(lengths.shape(0));
    const bool own = transitions.ndim() == 3;
    check_size("lengths", lengths.size(), K * L);
    check_size("transitions", transitions.size(), (own ? N : 1) * L * L);
    check_size("sequence_sizes", sequence_sizes.size(), N);
    for (const std::int64_t positions : view(sequence_sizes))
        if (positions < 0 || positions > T) throw std::invalid_argument("a length is out of range");
    if (segments && T * K > std::numeric_limits<std::int32_t>::max())
        throw std::invalid_argument("there are too many segments of their own scores");
    return {N,
            T,
            K,
            static_cast<std::int32_t>(L),
            states.data(),
            lengths.data(),
            transitions.data(),
            own,
            pointer("start", start, L),
            pointer("end", end, L),
            pointer("first", first, N * T * L),
            pointer("last", last, N * T * L),
            pointer("segments", segments, N * T * K * L),
            sequence_sizes.data()};
}

// log Z [N]; which sequences are left out; P(a segment covers the position) [N, T, L]; expected numbers of
// lengths [N, K, L], transitions [N, L, L], first and last labels [N, L]; P(a segment begins, ends there)
// [N, T, L]; P(segment) [N, T, K, L]. The last three are empty where these have no scores.
nb::tuple expectations(const Scores& states, const Scores& lengths, const Scores& transitions,
                       const MaybeScores& start, const MaybeScores& end, const MaybeScores& first,
                       const MaybeScores& last, const MaybeScores& segments,
                       const Array<std::int64_t>& sequence_sizes, int n_threads) {
    const SegmentBatch batch =
        make_batch(states, lengths, transitions, start, end, first, last, segments, sequence_sizes);
    const std::size_t N = states.shape(0), T = states.shape(1), L = states.shape(2), K = lengths.shape(0);
    NewArray<double> log_partition({N}), covers({N, T, L}), by_length({N, K, L}), pairs({N, L, L}),
        starts({N, L}), stops({N, L}), begins({first ? N : 0, T, L}), ends({last ? N : 0, T, L}),
        whole({segments ? N : 0, T, K, L});
    NewArray<std::uint8_t> hard({N});
    {
        const LockRelease release;
        for (NewArray<double>* array : {&covers, &by_length, &pairs, &starts, &stops, &begins, &ends, &whole})
            array->fill(0.0);
        sum_segments(batch,
                     {log_partition.data(), hard.data(), covers.data(), by_length.data(), pairs.data(),
                      starts.data(), stops.data(), first ? begins.data() : nullptr,
                      last ? ends.data() : nullptr, segments ? whole.data() : nullptr},
                     n_threads);
    }
    return nb::make_tuple(log_partition.take(), hard.take(), covers.take(), by_length.take(), pairs.take(),
                          starts.take(), stops.take(), begins.take(), ends.take(), whole.take());
}

nb::object best(const Scores& states, const Scores& lengths, const Scores& transitions,
                const MaybeScores& start, const MaybeScores& end, const MaybeScores& first,
                const MaybeScores& last, const MaybeScores& segments,
                const Array<std::int64_t>& sequence_sizes, int n_threads) {
    const SegmentBatch batch =
        make_batch(states, lengths, transitions, start, end, first, last, segments, sequence_sizes);
    return filled<std::int64_t>({states.shape(0), states.shape(1)},
                                [&](std::int64_t* tags) { best_segments(batch, tags, n_threads); });
}

}  // namespace

void bind_segment_batch(nb::module_& m) {
    const auto define = [&](const char* name, auto function) {
        m.def(name, function, "states"_a.noconvert(), "lengths"_a.noconvert(), "transitions"_a.noconvert(),
              "start"_a.none(), "end"_a.none(), "first"_a.none(), "last"_a.none(), "segments"_a.none(),
              "sequence_sizes"_a, "n_threads"_a);
    };
    define("segment_batch_expectations", &expectations);
    define("segment_batch_best", &best);
}

}  // namespace crfkit
