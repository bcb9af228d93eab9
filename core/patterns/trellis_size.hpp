// How large the trellis of a sequence is, in the terms of Qian et al. (2009).
#pragma once

#include <cstdint>
#include <vector>

#include "patterns/matcher.hpp"
#include "patterns/trellis.hpp"

namespace crfkit {

// By position t of one sequence. The sparsity of section 4 is κ(t) = grouped transitions / L^span.
struct Partition {
    std::vector<std::int64_t> cells;        // label sequences up to t that no pattern tells apart: alive sets
    std::vector<std::int64_t> transitions;  // from cells to cells, by what is active
    std::vector<std::int64_t> spans;        // positions from the first of a pattern that reads t to t itself
};

// Of one sequence without arcs between labels, all labels possible. Throws TrellisSizeError.
Partition partition_of(const PatternMatcher& matcher, const PatternStarts& starts,
                       const TrellisLimits& limits);

}  // namespace crfkit
