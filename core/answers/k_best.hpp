// The highest-scoring label sequences of one chain, of one lattice, or of one trellis.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chain/log_chain.hpp"
#include "lattice/lattice.hpp"
#include "patterns/trellis_run.hpp"

namespace crfkit {

struct ScoredLabels {
    double score;
    std::vector<std::int32_t> labels;  // [T]
};

// The k best label sequences, best first, all distinct; fewer when fewer are possible.
//
// Lazy enumeration (Jiménez & Marzal 1999): every (position, label) keeps the paths that end there in order,
// and finds its next one only when asked. After the first pass, O(T L²), each further label sequence costs
// O(T log) plus O(L) for each (position, label) that it visits for the first time. Ties: the lower label, at
// the last position first.
std::vector<ScoredLabels> k_best(const ChainView& chain, std::int64_t k);
// The same on a lattice with these scores of its nodes; L² is then the number of arcs between two positions.
std::vector<ScoredLabels> k_best(const Lattice& lattice, const ArcScores& arcs,
                                 std::span<const double> scores, std::int64_t k);
// The same on a trellis; its pools are passed through, so that L² is the number of arcs without them.
std::vector<ScoredLabels> k_best(const ScoredTrellis& trellis, std::int64_t k);

}  // namespace crfkit
