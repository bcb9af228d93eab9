// Scores of siblings as they are given: which of them can be used.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace crfkit {

// A score is NaN or +inf; `what` names it.
struct UnusableScore : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// Throws UnusableScore for scores [n + 1, n + 1, n + 1] (head, sibling, dependent) of which one that can be
// in a tree is NaN or +inf. It reads them once, so that they are in the cache afterwards.
void refuse_unusable_siblings(const double* siblings, std::int64_t n_words);

}  // namespace crfkit
