// The questions on a data set of lattices, wherever their scores come from.
#pragma once

#include <cstdint>
#include <vector>

#include "answers/k_best.hpp"
#include "data/annotation.hpp"
#include "lattice/scored_lattice.hpp"

namespace crfkit {

// The best labels of each sequence, into labels [T].
void best(const LatticeSource& source, std::int32_t* labels, int n_threads);
// P(y_t), into marginals [T, L].
void marginals(const LatticeSource& source, double* marginals, int n_threads);
// log Z of each sequence, into out [N]; `allowed` may restrict the labels (its weights are ignored).
void log_partitions(const LatticeSource& source, const Annotation* allowed, double* out, int n_threads);
std::vector<std::vector<ScoredLabels>> k_best(const LatticeSource& source, std::int64_t k, int n_threads);
// n samples of each sequence: uniforms and labels hold [n, length] for one sequence after the other.
void sample(const LatticeSource& source, std::int64_t n, const double* uniforms, std::int32_t* labels,
            int n_threads);

}  // namespace crfkit
