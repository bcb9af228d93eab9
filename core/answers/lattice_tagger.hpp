// The answers of a trained model for data sets of lattices.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "answers/k_best.hpp"
#include "answers/lattice_questions.hpp"
#include "base/forks.hpp"
#include "data/annotation.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"

namespace crfkit {

// The questions of Tagger (see there), for designs with `as_lattices` or `as_batches`. w [D] must outlive it.
class LatticeTagger {
  public:
    LatticeTagger(const Layout& layout, const double* w);
    ~LatticeTagger();

    void best(const Design& design, std::int32_t* labels, int n_threads) const;
    void marginals(const Design& design, double* marginals, int n_threads) const;
    void log_partitions(const Design& design, const Annotation* allowed, double* out, int n_threads) const;
    std::vector<std::vector<ScoredLabels>> k_best(const Design& design, std::int64_t k, int n_threads) const;
    void sample(const Design& design, std::int64_t n, const double* uniforms, std::int32_t* labels,
                int n_threads) const;

  private:
    struct Prepared;
    std::unique_ptr<LatticeSource> source(const Design& design, int n_threads) const;

    const Layout& layout_;
    const double* w_;
    mutable Once once_;
    mutable std::unique_ptr<const Prepared> prepared_;  // made when first needed
};

}  // namespace crfkit
