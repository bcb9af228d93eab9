#include "answers/scored_sequences.hpp"

#include <algorithm>

#include "base/interruption.hpp"
#include "base/subnormals.hpp"
#include "base/threads.hpp"

namespace crfkit {

// Calls function(n, first position, sequence) for every sequence that is not empty.
template <class Function>
void ScoredSequences::each_sequence(int n_threads, const Function& function) const {
    constexpr std::int64_t per_task = 16;
    const auto& ptr = design_.sequence_ptr;
    const std::int64_t n = design_.n_sequences(), n_tasks = (n + per_task - 1) / per_task;
    std::vector<std::unique_ptr<ScoredSequence>> readers(
        static_cast<std::size_t>(std::clamp<std::int64_t>(n_threads, 1, std::max<std::int64_t>(1, n_tasks))));
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int worker) {
        const FlushSubnormals flush;
        Pace pace;
        for (std::int64_t i = task * per_task; i < std::min(n, (task + 1) * per_task); ++i) {
            if (ptr[i] == ptr[i + 1]) continue;
            if (!readers[worker]) readers[worker] = reader();
            readers[worker]->load(i);
            pace.work(4 * (ptr[i + 1] - ptr[i]) * layout_.n_labels * layout_.n_labels);
            function(i, ptr[i], *readers[worker]);
        }
    });
}

void ScoredSequences::decode(std::int32_t* labels, int n_threads) const {
    each_sequence(n_threads, [&](std::int64_t, std::int64_t first, ScoredSequence& sequence) {
        sequence.decode(labels + first);
    });
}

void ScoredSequences::marginals(double* out, int n_threads) const {
    std::fill(out, out + design_.n_positions() * layout_.n_labels, 0.0);
    each_sequence(n_threads, [&](std::int64_t, std::int64_t first, ScoredSequence& sequence) {
        sequence.marginals(out + first * layout_.n_labels);
    });
}

void ScoredSequences::log_partitions(const Annotation* allowed, double* out, int n_threads) const {
    std::fill(out, out + design_.n_sequences(), 0.0);
    each_sequence(n_threads, [&](std::int64_t n, std::int64_t, ScoredSequence& sequence) {
        if (allowed) sequence.restrict(*allowed);
        out[n] = sequence.log_partition();
    });
}

std::vector<std::vector<ScoredLabels>> ScoredSequences::k_best(std::int64_t k, int n_threads) const {
    std::vector<std::vector<ScoredLabels>> out(static_cast<std::size_t>(design_.n_sequences()),
                                               {ScoredLabels{0, {}}});
    each_sequence(n_threads, [&](std::int64_t n, std::int64_t, ScoredSequence& sequence) {
        out[n] = sequence.k_best(k);
    });
    return out;
}

void ScoredSequences::sample(std::int64_t n, const double* uniforms, std::int32_t* labels,
                             int n_threads) const {
    each_sequence(n_threads, [&](std::int64_t, std::int64_t first, ScoredSequence& sequence) {
        sequence.sample(n, uniforms + n * first, labels + n * first);
    });
}

}  // namespace crfkit
