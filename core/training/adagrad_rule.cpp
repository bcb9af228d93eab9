#include "training/adagrad_rule.hpp"

#include <optional>
#include <vector>

#include "base/buffer.hpp"
#include "training/mini_batches.hpp"
#include "training/slot_array.hpp"

namespace crfkit {
namespace {

// The strengths of a penalty by slot: in groups, unless there are too many different ones.
class PackedStrengths {
  public:
    PackedStrengths(const SequenceSource& source, std::span<const double> strengths) {
        const bool copied = strengths.size() > 1 && !source.slots_are_weights();
        if (copied) each_ = source.pack_strengths(strengths);
        by_slot_ = copied ? std::span<const double>(each_) : strengths;
        groups_ = PenaltyGroups::find(by_slot_);
        if (groups_) std::vector<double>().swap(each_);
    }
    // The strengths must outlive it.
    SlotStrengths of_slots() const {
        if (groups_) return {groups_->l2.data(), groups_->groups(), false};
        return {by_slot_.data(), nullptr, true};
    }

  private:
    std::vector<double> each_;
    std::span<const double> by_slot_;
    std::optional<PenaltyGroups> groups_;
};

// The steps of one pass. z and √G change only where a step touches them, and the penalties so far are l1 C
// and l2 C for every weight: nothing has to be made up for.
class Steps {
  public:
    Steps(const SequenceSource& source, const Penalty& penalty, double rate, double passes,
          std::span<double> w, std::span<double> z, std::span<double> root, bool single)
        : source_(source),
          l1_(source, penalty.l1),
          l2_(source, penalty.l2),
          w_(w),
          z_(source, z, 0),
          root_(source, root, 1),
          slots_{z_.data(), root_.data(), l1_.of_slots(), l2_.of_slots(), rate, passes},
          single_(single) {
        if (!single_) gradient_.reset(source_.n_slots());
    }

    void begin_step(std::int64_t) {}

    void read(const std::vector<SlotRange>& ranges, double* to) const {
        step_kernels().read_adaptive(ranges.data(), static_cast<std::int64_t>(ranges.size()), slots_, to);
    }

    void move(const std::vector<SlotRange>& ranges, const double* weights, const double* gradient) {
        if (single_)
            descend(ranges, weights, gradient);
        else
            gradient_.add(ranges, gradient);
    }

    void end_step(std::int64_t n_sequences) {
        if (!single_)
            gradient_.release([&](const auto& ranges, const double* gradient, std::int64_t size) {
                before_.resize(size);
                read(ranges, before_.data());
                descend(ranges, before_.data(), gradient);
            });
        slots_.passes += static_cast<double>(n_sequences) / static_cast<double>(source_.n_sequences());
    }

    void give_back() {
        z_.give_back();
        root_.give_back();
        const SlotArray weights(source_, w_, 0);
        read({{0, source_.n_slots()}}, weights.data());
        weights.give_back();
    }

  private:
    void descend(const std::vector<SlotRange>& ranges, const double* weights, const double* gradient) {
        step_kernels().move_adaptive(ranges.data(), static_cast<std::int64_t>(ranges.size()), slots_, weights,
                                     gradient);
    }

    const SequenceSource& source_;
    const PackedStrengths l1_, l2_;
    const std::span<double> w_;  // [D]
    const SlotArray z_, root_;
    AdaptiveWeights slots_;
    const bool single_;       // one sequence a step
    BatchGradient gradient_;  // of steps along several sequences
    Buffer<double> before_;   // the weights that such a step moves
};

}  // namespace

double AdaGradRule::run(const SequenceSource& source, const Penalty& penalty, const RuleState& state,
                        std::span<const std::int32_t> order, int n_threads) const {
    const MiniBatches batches{order, batch_, n_threads};
    batches.check(source);
    Steps steps(source, penalty, rate_, passes_, state.array("weights"), state.array("z"),
                state.array("root"), batch_ == 1);
    return batches.run(source, steps);
}

}  // namespace crfkit
