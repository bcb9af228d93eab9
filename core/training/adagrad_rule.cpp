#include "training/adagrad_rule.hpp"

#include <vector>

#include "base/buffer.hpp"
#include "training/mini_batches.hpp"

namespace crfkit {
namespace {

// The steps of one pass. z and √G change only where a step touches them, and the penalties so far are l1 C
// and l2 C for every weight: nothing has to be made up for.
class Steps {
  public:
    Steps(const SequenceSource& source, const Penalty& penalty, double rate, double passes,
          std::span<double> w, std::span<double> z, std::span<double> root, bool single)
        : source_(source),
          l1_(source.pack_strengths(penalty.l1)),
          l2_(source.pack_strengths(penalty.l2)),
          w_(w),
          z_in_(z),
          root_in_(root),
          z_(source.n_slots()),
          root_(source.n_slots()),
          slots_{z_.data(),      root_.data(),   l1_.data(), l2_.data(),
                 l1_.size() > 1, l2_.size() > 1, rate,       passes},
          single_(single) {
        source_.pack(z.data(), 0, z_.data());
        source_.pack(root.data(), 1, root_.data());
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
        source_.unpack(z_.data(), z_in_.data());
        source_.unpack(root_.data(), root_in_.data());
        Buffer<double> slots(source_.n_slots());
        read({{0, source_.n_slots()}}, slots.data());
        source_.unpack(slots.data(), w_.data());
    }

  private:
    void descend(const std::vector<SlotRange>& ranges, const double* weights, const double* gradient) {
        step_kernels().move_adaptive(ranges.data(), static_cast<std::int64_t>(ranges.size()), slots_, weights,
                                     gradient);
    }

    const SequenceSource& source_;
    const std::vector<double> l1_, l2_;           // by slot, or one
    const std::span<double> w_, z_in_, root_in_;  // [D]
    Buffer<double> z_, root_;                     // by slot
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
