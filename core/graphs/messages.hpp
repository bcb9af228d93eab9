// The messages of belief propagation at one vector of scores, and how one table's are computed anew.
//
// With ρ_f the appearance probability of table f (1 unless tree-reweighted), in the words of plain numbers:
//   to a table       ν_{j→f}(x_j) = own_j(x_j) Π_{g∋j} m_{g→j}(x_j)^{ρ_g} / m_{f→j}(x_j)
//   to a variable    m_{f→i}(x_i) = Σ_{x_f \ i} exp(score_f(x_f) / ρ_f) Π_{j≠i} ν_{j→f}(x_j)
// (Wainwright, Jaakkola and Willsky 2005, eq. 39; own: tables over one variable, allowed values). Without
// weights the quotient is the product over all other tables, which needs no division.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "graphs/configurations.hpp"
#include "graphs/message_domain.hpp"
#include "graphs/message_plan.hpp"
#include "kernels/graph_rows.hpp"

namespace crfkit {

template <class Domain>
class Messages {
  public:
    struct Workspace {
        explicit Workspace(const MessagePlan& plan);
        std::vector<double> in, out;      // [widest] messages to a table, and from it
        std::vector<double> prefix;       // [arity + 1]
        std::vector<std::int32_t> at;     // [arity] values of a configuration
        std::vector<const double*> rows;  // [arity] where each variable's numbers begin
    };

    // appearance [F], or empty: 1 for all. allowed [values], or empty: all.
    Messages(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed,
             std::span<const double> appearance);

    // The messages to table f, into w.in, one variable after the other.
    void gather(std::int64_t f, Workspace& w) const;
    // The messages that table f sends for w.in, into w.out.
    void send(std::int64_t f, Workspace& w) const;
    // Compares `fresh`, as in w.out, with the messages of table f: the largest difference, in plain numbers,
    // of those to each variable of its scope goes to `changes` if given; returns the largest of all.
    double difference(std::int64_t f, const double* fresh, double* changes = nullptr) const;
    // Makes `fresh` the messages of table f, mixed with the old ones by `damping`.
    void store(std::int64_t f, const double* fresh, double damping);

    // own_j Π_g m_{g→j}^{ρ_g}, not scaled.
    void belief(std::int64_t variable, double* out) const;
    void own(std::int64_t variable, double* out) const {
        std::copy_n(own_.data() + plan_.graph.value_ptr[variable], plan_.graph.cardinalities[variable], out);
    }
    std::vector<double> log_messages() const {
        std::vector<double> logs(messages_);
        for (double& x : logs) x = Domain::to_log(x);
        return logs;
    }
    double weight(std::int64_t place) const { return weights_[place]; }  // of an entry of a table
    double shift(std::int64_t f) const { return shifts_[f]; }  // log of what its entries were divided by
    double constant() const { return constant_; }  // log of what `own` was divided by, and of empty tables
    double appearance(std::int64_t f) const { return appearance_.empty() ? 1.0 : appearance_[f]; }
    const double* message(std::int64_t edge) const { return messages_.data() + plan_.message_ptr[edge]; }
    const MessagePlan& plan() const { return plan_; }
    bool reweighted() const { return !raised_.empty(); }
    const double* weights() const { return weights_.data(); }
    double* all_messages() { return messages_.data(); }

  private:
    void cavity(std::int64_t edge, double* out) const;
    void send_any(std::int64_t f, Workspace& w) const;  // before they are scaled

    const MessagePlan& plan_;
    std::span<const double> appearance_;
    std::vector<double> own_;       // [values]
    std::vector<double> weights_;   // [n_scores]
    std::vector<double> shifts_;    // [F]
    std::vector<double> messages_;  // [message_ptr.back()]
    std::vector<double> raised_;    // the same to the power of ρ; empty without weights
    double constant_ = 0;
};

extern template class Messages<Sums<PlainNumbers>>;
extern template class Messages<Sums<Logarithms>>;
extern template class Messages<Maxima<PlainNumbers>>;
extern template class Messages<Maxima<Logarithms>>;

}  // namespace crfkit
