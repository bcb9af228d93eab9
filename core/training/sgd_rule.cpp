#include "training/sgd_rule.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "training/mini_batches.hpp"
#include "training/slot_array.hpp"

namespace crfkit {
namespace {

constexpr double kSmallestFactor = 1e-3;  // P of a group: below, all weights are settled and P begins at 1
constexpr std::size_t kShortTables = 1 << 16;  // entries that tables may have, however few weights there are

// The steps of one pass.
//
// A weight that no step touches keeps v in w = P v, where P = Π 1 / (1 + c l2), but for l1, which takes
// l1 · c / P off |v| at each step (in v's scale, before the division by 1 + c l2). With
//   Q_k = Σ_{j<k} c_j / P_j      A_k = Σ_{j≤k} P_j      B_k = Σ_{j≤k} P_j Q_j
// steps i + 1..k turn v into soft(v, l1 (Q_k − Q_i)) and add this to the sum of the iterates (see
// sum_of_iterates), so it follows from the tables at i and k alone. The tables begin anew (`fold`) before P
// becomes so small that differences of A and B lose their digits, and before they have more entries than
// there are weights.
class Steps {
  public:
    Steps(const SequenceSource& source, const Penalty& penalty, std::span<const double> rates,
          std::span<double> w, std::span<double> total, bool single)
        : source_(source),
          l1_(source.pack_strengths(penalty.l1)),
          groups_(source.pack_strengths(penalty.l2)),
          has_l1_(std::any_of(l1_.begin(), l1_.end(), [](double strength) { return strength > 0; })),
          averaging_(!total.empty()),
          lazy_(has_l1_ || averaging_),
          single_(single),
          rates_(rates),
          v_(source, w, 0),
          total_(source, total, 0),
          sums_(groups_.l2.size(), {Sums{}}) {
        if (!single_) gradient_.reset(source_.n_slots());
        stamps_.assign(lazy_ ? static_cast<std::size_t>(source_.n_slots()) : 0, 0);
    }

    void begin_step(std::int64_t k) { rate_ = rates_[k]; }

    // w = P soft(v, l1 (Q now − Q when v was settled)).
    void read(const std::vector<SlotRange>& ranges, double* to) const {
        if (!has_l1_ && is_even()) {
            step_kernels().read(ranges.data(), static_cast<std::int64_t>(ranges.size()), v_.data(),
                                sums_[0].back().P, to);
            return;
        }
        for (const SlotRange range : ranges)
            for (std::int64_t d = range.begin; d < range.end; ++d) {
                const std::vector<Sums>& sums = sums_[groups_.of(d)];
                const double shrink =
                    has_l1_ ? l1_of(d) * (sums.back().Q - sums[stamps_[range.begin]].Q) : 0.0;
                *to++ = soft_threshold(v_[d], shrink) * sums.back().P;
            }
    }

    void move(const std::vector<SlotRange>& ranges, const double*, const double* gradient) {
        if (single_)
            descend(ranges, gradient);
        else
            gradient_.add(ranges, gradient);
    }

    void end_step(std::int64_t n_sequences) {
        if (!single_)
            gradient_.release(
                [&](const auto& ranges, const double* gradient, std::int64_t) { descend(ranges, gradient); });
        const double c =
            rate_ * static_cast<double>(n_sequences) / static_cast<double>(source_.n_sequences());
        bool small = false;
        for (std::size_t g = 0; g < sums_.size(); ++g) {
            const Sums before = sums_[g].back();
            Sums after;
            after.P = before.P / (1 + c * groups_.l2[g]);
            after.Q = before.Q + c / before.P;
            after.A = before.A + after.P;
            after.B = before.B + after.P * after.Q;
            small = small || after.P < kSmallestFactor;
            if (lazy_)
                sums_[g].push_back(after);
            else
                sums_[g].back() = after;
        }
        if (small || tables_are_full()) fold();
    }

    void give_back() {
        fold();
        v_.give_back();
        if (averaging_) total_.give_back();
    }

  private:
    struct Sums {
        double P = 1, Q = 0, A = 0, B = 0;
    };

    double l1_of(std::int64_t d) const { return l1_[l1_.size() == 1 ? 0 : d]; }
    // Whether all weights have the same penalty.
    bool is_even() const { return l1_.size() == 1 && sums_.size() == 1; }

    // The step along the gradient, without its penalty: w −= η g is v −= η / P g.
    void descend(const std::vector<SlotRange>& ranges, const double* gradient) {
        if (lazy_)
            for (const SlotRange range : ranges) settle(range);
        if (sums_.size() == 1) {
            step_kernels().add(ranges.data(), static_cast<std::int64_t>(ranges.size()), gradient,
                               -rate_ / sums_[0].back().P, v_.data());
            return;
        }
        for (const SlotRange range : ranges)
            for (std::int64_t d = range.begin; d < range.end; ++d)
                v_[d] -= rate_ / sums_[groups_.of(d)].back().P * *gradient++;
    }

    bool tables_are_full() const {
        const std::size_t n_weights = static_cast<std::size_t>(source_.n_slots());
        return sums_.size() * sums_[0].size() > std::max(n_weights, kShortTables);
    }

    // Makes up for the steps since a range was last touched.
    void settle(SlotRange range) {
        const std::size_t from = stamps_[range.begin], now = sums_[0].size() - 1;
        if (from == now) return;
        stamps_[range.begin] = static_cast<std::uint32_t>(now);
        if (is_even() && !(averaging_ && has_l1_)) {
            const Sums &then = sums_[0][from], &here = sums_[0][now];
            step_kernels().settle(v_.data() + range.begin, averaging_ ? total_.data() + range.begin : nullptr,
                                  here.A - then.A, l1_[0] * (here.Q - then.Q), range.end - range.begin);
            return;
        }
        for (std::int64_t d = range.begin; d < range.end; ++d) {
            const std::vector<Sums>& sums = sums_[groups_.of(d)];
            if (averaging_) total_[d] += sum_of_iterates(d, sums, from);
            v_[d] = soft_threshold(v_[d], l1_of(d) * (sums[now].Q - sums[from].Q));
        }
    }

    // Σ_m P_m soft(v, l1 (Q_m − Q_from)) over m = from + 1..now. As Q grows, the terms are 0 from some m on;
    // for v > 0 those up to m = last sum up to (v + l1 Q_from) (A_last − A_from) − l1 (B_last − B_from).
    double sum_of_iterates(std::int64_t d, const std::vector<Sums>& sums, std::size_t from) const {
        const double v = std::abs(v_[d]), l1 = l1_of(d);
        if (v == 0) return 0;
        std::size_t last = sums.size() - 1;
        if (l1 * (sums[last].Q - sums[from].Q) >= v) {
            const auto remains = [&](const Sums& at) { return l1 * (at.Q - sums[from].Q) < v; };
            const auto first = sums.begin() + static_cast<std::ptrdiff_t>(from);
            last =
                static_cast<std::size_t>(std::partition_point(first, sums.end(), remains) - sums.begin()) - 1;
        }
        const double size =
            (v + l1 * sums[from].Q) * (sums[last].A - sums[from].A) - l1 * (sums[last].B - sums[from].B);
        return v_[d] > 0 ? size : -size;
    }

    // Settles all weights, and begins the tables anew: v = w.
    void fold() {
        if (lazy_) source_.each_slot_range([&](SlotRange range) { settle(range); });
        for (std::int64_t d = 0; d < source_.n_slots(); ++d) v_[d] *= sums_[groups_.of(d)].back().P;
        std::fill(stamps_.begin(), stamps_.end(), 0);
        for (auto& sums : sums_) sums.assign(1, Sums{});
    }

    const SequenceSource& source_;
    const std::vector<double> l1_;  // by slot, or one
    const PenaltyGroups groups_;
    const bool has_l1_, averaging_, lazy_;
    const bool single_;  // one sequence a step
    const std::span<const double> rates_;
    const SlotArray v_, total_;
    BatchGradient gradient_;  // of steps along several sequences
    double rate_ = 0;
    // [groups][steps since the last fold + 1]; the last alone unless lazy
    std::vector<std::vector<Sums>> sums_;
    std::vector<std::uint32_t> stamps_;  // where a range begins: the step up to which it is settled; or empty
};

}  // namespace

double SGDRule::run(const SequenceSource& source, const Penalty& penalty, const RuleState& state,
                    std::span<const std::int32_t> order, int n_threads) const {
    const MiniBatches batches{order, batch_, n_threads};
    batches.check(source);
    if (static_cast<std::int64_t>(rates_.size()) != batches.n_steps())
        throw std::invalid_argument("there are " + std::to_string(rates_.size()) + " rates, expected " +
                                    std::to_string(batches.n_steps()) + ": one for each step");
    const std::span<double> total = state.has("total") ? state.array("total") : std::span<double>{};
    Steps steps(source, penalty, rates_, state.array("weights"), total, batch_ == 1);
    return batches.run(source, steps);
}

}  // namespace crfkit
