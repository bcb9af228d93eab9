// Many chains of plain scores at once: log Z, marginals, probabilities of spans, and the best labels.
#pragma once

#include <cstdint>
#include <vector>

#include "paths/span_labels.hpp"

namespace crfkit {

// Scores of N chains of up to T positions in rows without padding. What stands beyond the end of a chain is
// never read.
template <class Real>
struct ChainBatch {
    std::int64_t n_chains, n_positions;  // N, T
    std::int32_t n_labels;               // L
    const Real* states;                  // [N, T, L]
    const Real* arcs;                    // [L, L], or [N, L, L] with own_arcs
    bool own_arcs;
    const Real* start;            // [L] or null
    const Real* end;              // [L] or null
    const std::int64_t* lengths;  // [N], 0 to T
};

// log Z [N]; −inf where no label sequence is possible, 0 for an empty chain. Unless null: P(y_t) into states
// [N, T, L], 0 beyond the end and where nothing is possible; Σ_t P(y_{t−1}, y_t), weighted by `weights` [N]
// (null: 1), into arcs, summed over the chains that share them.
template <class Real>
void batch_expectations(const ChainBatch<Real>& batch, const Real* weights, double* log_partition,
                        Real* states, Real* arcs, int n_threads);

// The best labels [N, T]; −1 beyond the end and where nothing is possible.
template <class Real>
void batch_best(const ChainBatch<Real>& batch, std::int64_t* labels, int n_threads);

// The spans of each chain with a probability of at least `threshold` > 0, sorted; none where nothing is
// possible.
std::vector<std::vector<ScoredSpan>> batch_spans(const ChainBatch<double>& batch, const SpanLabels& labels,
                                                 double threshold, int n_threads);
// Fills in the probabilities of spans of each chain.
void batch_span_probabilities(const ChainBatch<double>& batch, const SpanLabels& labels,
                              std::vector<std::vector<ScoredSpan>>& given, int n_threads);
// The expected number of spans of each chain, into out [N].
void batch_n_spans(const ChainBatch<double>& batch, const SpanLabels& labels, double* out, int n_threads);

}  // namespace crfkit
