// Σ_n weight_n (log Z_n − log Z_gold,n) for feature functions, whose values on a data set may not fit into
// memory: it is worked through slice by slice, in double precision.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/annotation.hpp"
#include "lattice/function_parts.hpp"
#include "training/data_loss.hpp"
#include "training/part_loss.hpp"

namespace crfkit {

class FunctionLoss final : public DataLoss {
  public:
    // gold: of the whole data set, the positions of whose sequences begin at sequence_ptr [N + 1]. Throws
    // std::invalid_argument where they do not fit together.
    FunctionLoss(std::shared_ptr<const FunctionSlices> slices, std::vector<std::int64_t> sequence_ptr,
                 Annotation gold, std::int64_t n_weights, int n_threads);

    double evaluate(const double* w, double* gradient) override { return sum(w, nullptr, gradient); }
    void hessian_vector(const double* w, const double* v, double* out) override { sum(w, v, out); }
    // Sequence by sequence, in any order, whatever fits into memory.
    const SequenceSource& sequences() override;
    std::unique_ptr<Mistakes> mistakes(const double* w) override;

  private:
    // weight · (P − P_gold) of every part of a slice, or how it changes along v.
    struct Residuals {
        std::vector<double> nodes, arcs;
    };
    double sum(const double* w, const double* v, double* out);
    void check_all();
    void check(const FunctionSlice& slice) const;
    double differentiate(const FunctionSlice& slice, const double* w, const double* v,
                         Residuals& residuals) const;
    void gather(const FunctionSlice& slice, const Residuals& residuals, double* out) const;

    std::shared_ptr<const FunctionSlices> slices_;
    std::vector<std::int64_t> sequence_ptr_;
    Annotation gold_;
    FunctionParts parts_;
    PartSequences sequences_;
    bool checked_ = false;  // whether the annotation of all slices is possible
};

}  // namespace crfkit
