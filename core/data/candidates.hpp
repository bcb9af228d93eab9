// The labels that are really possible at each position: those that a label sequence of the whole sequence may
// have there.
#pragma once

#include <cstdint>
#include <vector>

#include "data/annotation.hpp"
#include "data/bigrams.hpp"
#include "data/design.hpp"

namespace crfkit {

// Position t has the labels labels[position_ptr[t]..position_ptr[t+1]−1], ascending.
//
// With P_t the labels allowed at position t and only the arcs of a set B (Liossis, corrected):
//   t_0 = P_0 ∩ {may start},   t_i = P_i ∩ {b : some a in t_{i−1} has an arc a → b}
//   q_{n−1} = P_{n−1} ∩ {may end},   q_i = P_i ∩ {a : some b in q_{i+1} has an arc a → b}
//   r_i = t_i ∩ q_i
// Start and end are no labels, so the recursions need not exclude them.
struct Candidates {
    std::vector<std::int64_t> position_ptr;  // [positions + 1]
    std::vector<std::int32_t> labels;        // [nodes]

    std::int64_t n_nodes() const { return static_cast<std::int64_t>(labels.size()); }
};

// The pairs of labels that a layout lets exist; all of them are listed that have a score of their own.
Bigrams existing_bigrams(const Layout& layout);

// The candidates of every position of a data set. Throws std::invalid_argument, naming the sequence, where no
// label sequence is possible.
Candidates find_candidates(const Bigrams& bigrams, const Design& design, int n_threads);

// The same for one sequence, whose first position becomes position 0; with `gold` only what it admits.
Candidates candidates_of(const Bigrams& bigrams, const Design& design, const Annotation* gold,
                         std::int64_t n);

// Throws std::invalid_argument, naming the sequence, where no label sequence is possible; with `gold`, none
// that it admits.
void check_possible(const Bigrams& bigrams, const Design& design, const Annotation* gold, int n_threads);

}  // namespace crfkit
