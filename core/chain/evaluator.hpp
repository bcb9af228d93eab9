// Σ_n weight_n (log Z_n − log Z_gold,n) over a data set, with its gradient or its Hessian times a direction:
// forward–backward on dense chains, scaled, or in log space where that would not be exact.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "chain/message_store.hpp"
#include "chain/transition_sums.hpp"
#include "chain/workspace.hpp"
#include "data/annotation.hpp"
#include "data/blocks.hpp"
#include "data/design.hpp"
#include "data/gradient_grid.hpp"
#include "data/layout.hpp"
#include "data/residual_sums.hpp"
#include "data/scorer.hpp"
#include "kernels/kernels.hpp"
#include "training/blocked_evaluator.hpp"

namespace crfkit {

template <class Real>
class Evaluator final : public BlockedEvaluator {
  public:
    Evaluator(const Layout& layout, const Design& design, const Annotation& gold,
              const GroupedBlocks& grouped);

    // Transitions too far apart for this precision set `unsafe`, unless Real is double (then log space).
    double evaluate(const double* w, const double* v, double* out, int n_threads) override;
    // Tables, sums and workspaces, to one of the same layout.
    void hand_over(DataEvaluator& next, bool same_question) override;

  private:
    // What one block is evaluated in.
    struct Slot {
        Buffer<Real> residuals;      // [positions of the block, S]
        Buffer<Real> own_residuals;  // [positions of the block with arcs of their own, L, S]
        Ends ends;
        TransitionSums<Real> transitions;
        BlockSums sums;

        void clear(const Block& block, std::int32_t n_labels, std::int32_t stride) {
            residuals.resize((block.last_position - block.first_position) * stride);
            own_residuals.assign(block.n_own * n_labels * stride, 0);
            ends.clear(n_labels);
            transitions.clear(n_labels, stride);
        }
    };
    // One sequence with all labels (first), or with those that its annotation allows.
    struct Run {
        const Block& block;
        Slot& slot;
        std::int64_t n, begin, n_positions;
        double weight;
        bool first;
        Run allowed() const { return {block, slot, n, begin, n_positions, -weight, false}; }
    };

    Run run_of(const Block& block, Slot& slot, std::int64_t n) const {
        const std::int64_t begin = design_.sequence_ptr[n];
        return {block, slot, n, begin, design_.sequence_ptr[n + 1] - begin, gold_.weights[n], true};
    }
    double add_all(double* out, int n_threads);
    void open(std::size_t n_slots, std::size_t n_workers) override;
    void run_block(std::size_t i, std::size_t slot_number, std::size_t worker) override;
    void sum(std::size_t i, std::size_t slot_number, std::int64_t range) override;
    void merge(std::size_t i, std::size_t slot_number, std::int64_t range, double* out) override;
    void add(std::size_t i, std::size_t slot_number, std::int64_t range, double* out) override;
    // Nothing is known beforehand of the size of Hessian–vector products.
    bool adds_in_any_order() const override { return grid_ && !hessian_vector_; }
    // To which what blocks add is rounded.
    SumGrid grid() const { return adds_in_any_order() ? *grid_ : SumGrid(); }
    void merge_transitions(const Slot& slot, std::int64_t range);
    void finish(double* out, int n_threads) override;
    // Whether a sequence is one of those that run_plain takes.
    bool is_plain(const Run& run) const {
        return !hessian_vector_ && !unsafe && !some_arcs_missing_ && run.block.n_own == 0 &&
               gold_.complete(run.begin, run.begin + run.n_positions);
    }
    void run_plain(std::span<const Run> runs, std::vector<Workspace<Real>>& work);
    void run_sequence(const Run& run, Workspace<Real>& work);
    double score(const Run& run, Real* states, Workspace<Real>& work);
    void subtract_gold(const Run& run) {
        for (std::int64_t t = 0; t < run.n_positions; ++t)
            residuals(run)[t * tables_.stride + gold_.labels[run.begin + t]] -= static_cast<Real>(run.weight);
    }
    void run_kept(const Run& run, Workspace<Real>& work);
    bool prepare_arcs(const Run& run, Workspace<Real>& work);
    bool keeps(std::int64_t n) const { return !hessian_vector_ && store_ && store_->has_space(n); }
    Messages<Real> messages(const Run& run, Workspace<Real>& work);
    // Of a sequence that run_plain takes: its scores lie where its residuals go.
    Messages<Real> plain_messages(const Run& run, Workspace<Real>& work) {
        Messages<Real> found = messages(run, work);
        if (!keeps(run.n)) found.states = found.probs;
        return found;
    }
    double run_scaled(const Run& run, Workspace<Real>& work);
    double use_messages(const Run& run, const Messages<Real>& messages, double log_partition,
                        Workspace<Real>& work);
    void finish_scaled(const Run& run, const Messages<Real>& messages, Workspace<Real>& work);
    double run_in_log_space(const Run& run, Workspace<Real>& work);
    double gold_score(const Run& run, const Real* states, Workspace<Real>& work);
    void add_pairs(const Run& run, const Messages<Real>& messages, Workspace<Real>& work);
    void add_own_pair(const Run& run, std::int64_t position, const double* marginals);

    Real* residuals(const Run& run) {
        return run.slot.residuals.data() + (run.begin - run.block.first_position) * tables_.stride;
    }
    std::int64_t table_size() const { return static_cast<std::int64_t>(layout_.n_labels) * tables_.stride; }

    const std::vector<Block>& blocks_;
    WeightTables<Real> tables_, direction_tables_;
    Scorer<Real> scorer_, direction_;
    const bool some_arcs_missing_;
    const std::optional<SumGrid> grid_;  // none in double precision, which is to be more exact
    SharedArcs<Real> arcs_;
    std::vector<std::vector<Workspace<Real>>> work_;  // of each worker: one for each chain side by side
    std::vector<Slot> slots_;
    ResidualSums<Real> sums_;
    std::unique_ptr<MessageStore<Real>> store_;  // from the first Hessian product on
    std::optional<std::vector<double>> known_;   // [D] the weights whose messages it has, if any
    bool tables_of_question_ = false;            // the tables are those of the question that comes next
    bool tables_of_known_ = false;               // they are those of known_
    std::vector<double> observed_,
        expected_;                // [L, S] of arcs; expected − observed, or the change of expected
    std::vector<double> shared_;  // [L, S] expected, at positions without arcs of their own
};

extern template class Evaluator<float>;
extern template class Evaluator<double>;

}  // namespace crfkit
