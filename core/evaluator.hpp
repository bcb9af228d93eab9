// Σ_n weight_n (log Z_n − log Z_gold,n) over a data set, with its gradient or its Hessian times a direction.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "annotation.hpp"
#include "blocks.hpp"
#include "buffer.hpp"
#include "design.hpp"
#include "kernels.hpp"
#include "layout.hpp"
#include "scorer.hpp"
#include "sequence.hpp"

namespace crfkit {

template <class Real>
class Evaluator {
  public:
    Evaluator(const Layout& layout, const Design& design, const Annotation& gold,
              const std::vector<Block>& blocks);

    // Fills out[D] with the gradient at w, or with H·v when v is given. Returns the value.
    // Arcs too far apart for this precision: returns NaN with `unsafe` set, unless Real is double (then log
    // space).
    double evaluate(const double* w, const double* v, double* out, int n_threads);
    bool unsafe = false;

  private:
    // What a chunk of sequences adds to the expectations of arcs.
    struct PairSums {
        Buffer<Real>
            products;  // [S, S] Σ forward_{t−1} ⊗ pushed_t: still to be multiplied by the arcs' weights
        Buffer<Real> changes;      // [S, S] the same for tangents
        std::int64_t n_terms = 0;  // pairs of sites summed up in `products`
        Buffer<double>
            direct;  // [L, S] Σ of arc marginals: of sites with arcs of their own, and of flushed products
        bool direct_used = false;

        // Zeros before the first use.
        double* direct_sums(std::int64_t size) {
            if (!direct_used) direct.assign(size, 0.0);
            direct_used = true;
            return direct.data();
        }
    };

    void run_chunk(const Block& block, std::int64_t chunk, int worker);
    void run_sequence(const Block& block, std::int64_t n, Workspace<Real>& work, PairSums& pairs);
    double run_scaled(const Block& block, std::int64_t n, double weight, bool first, Workspace<Real>& work,
                      PairSums& pairs);
    double run_in_log_space(const Block& block, std::int64_t n, double weight, bool first,
                            Workspace<Real>& work, PairSums& pairs);
    double gold_score(const Block& block, std::int64_t n, double weight, Workspace<Real>& work);
    void add_pairs(const Block& block, std::int64_t n, Real weight, Workspace<Real>& work, PairSums& pairs);
    void add_own_pair(const Block& block, std::int64_t site, double weight, const double* marginals,
                      PairSums& pairs);
    double shared_sum(const PairSums& pairs, std::int64_t i) const;
    void flush(PairSums& pairs);
    void collect(const Block& block);
    void gather(const Block& block, std::size_t block_number, const GatherTask& task, double* out);
    void write_rows(double* out, int n_threads) const;
    void write_arcs(double* out) const;

    const Layout& layout_;
    const Design& design_;
    const Annotation& gold_;
    const std::vector<Block>& blocks_;
    WeightTables<Real> tables_, direction_tables_;
    Scorer<Real> scorer_, direction_;
    const bool some_arcs_missing_;
    bool tangent_ = false;
    SharedArcs<Real> arcs_;
    std::vector<Workspace<Real>> work_;
    std::vector<PairSums> pairs_;
    std::vector<Typed<Real>> row_values_, entry_values_, arc_values_, dense_;
    Buffer<Real> residuals_;      // [sites of a block, S]
    Buffer<Real> own_residuals_;  // [sites of a block with arcs of their own, L, S]
    Buffer<double> row_sums_;     // [n_rows, S] Φᵀ residuals of the features that are scored as a whole
    std::vector<double> losses_;  // [N]
    std::vector<double> observed_, expected_, start_, end_;  // [L, S], [L, S], [S], [S]
};

extern template class Evaluator<float>;
extern template class Evaluator<double>;

}  // namespace crfkit
