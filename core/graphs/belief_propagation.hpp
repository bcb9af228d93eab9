// Belief propagation: approximate marginals, log Z and best assignments; exact on graphs without cycles.
//
//   beliefs    b_i(x_i) ∝ own_i Π_f m_{f→i}          b_f(x_f) ∝ exp(score_f) Π_j ν_{j→f}
//   Bethe      log Z ≈ Σ_f log Σ exp(score_f) Π_j ν_{j→f} + Σ_i log Σ own_i Π_f m_{f→i} − Σ_{f,i} log Σ
//   ν_{i→f} m_{f→i}
// which no scale of a message changes, and which is stationary at a fixed point (Yedidia, Freeman and Weiss
// 2005): its error there is of second order in that of the messages.
//
// Tree-reweighted (Wainwright, Jaakkola and Willsky 2005): forests T with probabilities p_T hold table f with
// probability ρ_f. Any messages λ = log m divide the scores among the forests,
//   score_T(y) = Σ_i (own_i + Σ_f ρ_f λ_{f→i}) + Σ_{f∈T} (score_f / ρ_f − Σ_i λ_{f→i}),     Σ_T p_T score_T =
//   score,
// and log Z is convex, so that log Z ≤ Σ_T p_T log Z_T, whether the messages have converged or not. The same
// with maxima bounds the best score.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graphs/message_plan.hpp"

namespace crfkit {

enum class Schedule { kResidual, kSequential, kSynchronous };

struct MessageOptions {
    Schedule schedule = Schedule::kSequential;
    bool maximise = false;
    std::optional<double> damping;  // none: 0, and more where messages do not settle
    double tolerance = 1e-6;
    std::int64_t max_iterations = 1000;
    int n_threads = 1;
    bool keep_messages = false;
};

struct Beliefs {
    bool possible = true;  // false: no assignment is; nothing else is set
    bool converged = false;
    double residual = 0;    // the largest change that one more update would make to a number of any message
    double iterations = 0;  // updates of tables, divided by their number
    double damping = 0;     // at the end
    std::int64_t n_averaged =
        0;                    // states of the messages whose beliefs are averaged; 0: those of the last alone
    bool logarithms = false;  // whether plain numbers were not enough
    double log_partition =
        0;  // Bethe, or the upper bound of reweighted messages; maximise: the same of the best score
    std::vector<double> of_variables;  // [values] sum 1; maximise: maximum 1
    std::vector<double> of_tables;     // [n_scores]
    std::vector<std::int32_t> best;    // [V] maximise: an assignment; empty if none was found
    std::vector<double> log_messages;  // if they are kept, numbered as in the plan
};

// The plan of one graph, made once; `run` may be called by several threads at a time.
class BeliefPropagation {
  public:
    explicit BeliefPropagation(const FactorGraph& graph, bool tree_reweighted = false);

    // scores [n_scores], finite or −inf; allowed [values], or empty.
    Beliefs run(std::span<const double> scores, std::span<const bool> allowed,
                const MessageOptions& options) const;

    const MessagePlan& plan() const { return plan_; }
    bool is_exact() const { return plan_.is_forest; }
    bool is_reweighted() const { return !appearance_.empty(); }
    std::span<const double> appearance() const { return appearance_; }  // [F]; empty: not reweighted

  private:
    template <class Domain>
    Beliefs run_in(std::span<const double> scores, std::span<const bool> allowed,
                   const MessageOptions& options) const;
    template <class Messages>
    double upper_bound(const Messages& messages, std::span<const double> scores,
                       std::span<const bool> allowed, const MessageOptions& options) const;

    MessagePlan plan_;
    std::vector<double> appearance_;                  // [F]; empty: not reweighted
    std::vector<std::vector<std::int64_t>> forests_;  // the tables of each
    std::vector<BeliefPropagation> of_forests_;
};

}  // namespace crfkit
