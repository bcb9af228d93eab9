// Compiled once per instruction set, with CRFKIT_ISA naming the namespace. Only code whose every symbol lives
// in that namespace may be used here: an inline function of the standard library compiled for a new processor
// could otherwise be the copy that the linker keeps for all.
#include "kernels/kernels.hpp"

#include "kernels/batch_kernels.hpp"
#include "kernels/chain_group_kernels.hpp"
#include "kernels/chain_kernels.hpp"
#include "kernels/eisner_kernels.hpp"
#include "kernels/feature_kernels.hpp"
#include "kernels/graph_kernels.hpp"
#include "kernels/hessian_kernels.hpp"
#include "kernels/hyperpath_kernels.hpp"
#include "kernels/product_kernels.hpp"
#include "kernels/segment_kernels.hpp"
#include "kernels/sibling_kernels.hpp"
#include "kernels/step_kernels.hpp"
#include "kernels/table_kernels.hpp"
#include "kernels/tree_kernels.hpp"
#include "kernels/trellis_kernels.hpp"
#include "kernels/vector_kernels.hpp"

namespace crfkit::CRFKIT_ISA {

template <class Real>
constexpr Kernels<Real> table() {
    return {Lanes<Real>::count,      exp_shifted<Real>,           exponentiate<Real>,
            score_positions<Real>,   score_listed<Real>,          score_dense<Real>,
            sum_product<Real>,       sum_products<Real>,          hessian_vectors<Real>,
            add_products<Real>,      add_changes<Real>,           max_sum<Real>,
            sum_rows<Real>,          sum_entries<Real>,           sum_dense<Real>,
            batch_sum_product<Real>, batch_hessian_vectors<Real>, batch_products<Real>,
            trellis_forward<Real>,   trellis_backward<Real>,      trellis_products<Real>,
            segment_forward<Real>,   segment_backward<Real>};
}

extern const Kernels<float> float_kernels;
const Kernels<float> float_kernels = table<float>();

#ifndef CRFKIT_NARROW  // narrow vectors make no rows shorter but those of floats
extern const Kernels<double> double_kernels;
const Kernels<double> double_kernels = table<double>();

extern const VectorKernels vector_kernels;
const VectorKernels vector_kernels = {
    products,
    step,
    penalty,
    squared_penalty,
    pseudo_gradient,
    orthant_step,
    {write_pair<float>, row_products<float>, gram<float>, combine<float>},
    {write_pair<BFloat16>, row_products<BFloat16>, gram<BFloat16>, combine<BFloat16>}};

extern const TreeKernels tree_kernels;
const TreeKernels tree_kernels = {
    weigh,         add_rows,   add_rows_checked, combine_rows, combine_rows_checked,
    multiply_rows, merge_rows, largest_of};
extern const GraphKernels graph_kernels;
const GraphKernels graph_kernels = {pair_messages<Adds>, pair_messages<Maximises>, pair_sweep<Adds>,
                                    pair_sweep<Maximises>};
extern const TableKernels table_kernels;
const TableKernels table_kernels = {table_multiply,     table_multiply_runs, table_scale, table_add,
                                    table_add_runs,     table_copy_runs,     table_shift, table_product,
                                    table_add_product,  table_project_runs,  table_sum,   table_raise,
                                    table_exponentiate, table_range};
extern const HyperpathKernels hyperpath_kernels;
const HyperpathKernels hyperpath_kernels = {weigh_within};
extern const EisnerKernels eisner_kernels;
const EisnerKernels eisner_kernels = {eisner_inside<SumsOfProducts>, eisner_outside,
                                      eisner_inside<MaximaOfSums>};
extern const SiblingKernels sibling_kernels = {all_usable,
                                               place_siblings<ExpOfSums>,
                                               place_siblings<PlainScores>,
                                               sibling_inside<SumsOfProducts>,
                                               sibling_outside,
                                               sibling_inside<MaximaOfSums>,
                                               write_siblings,
                                               raise_row,
                                               weigh_sums};
extern const StepKernels step_kernels;
const StepKernels step_kernels = {read_slots,    add_to_slots, settle,    read_adaptive,
                                  move_adaptive, read_late,    close_gaps};
#endif

}  // namespace crfkit::CRFKIT_ISA
