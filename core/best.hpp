// The highest-scoring labellings of one chain.
#pragma once

#include <cstdint>
#include <vector>

#include "log_chain.hpp"

namespace crfkit {

struct ScoredLabels {
    double score;
    std::vector<std::int32_t> labels;  // [T]
};

// The k best labellings, best first, all distinct; fewer when fewer are possible.
//
// Lazy enumeration (Jiménez & Marzal 1999): every (site, label) keeps the paths that end there in order, and
// finds its next one only when asked. After the first pass, O(T L²), each further labelling costs O(T log)
// plus O(L) for each (site, label) that it visits for the first time. Ties: the lower label, at the last site
// first.
std::vector<ScoredLabels> k_best(const ChainView& chain, std::int64_t k);

}  // namespace crfkit
