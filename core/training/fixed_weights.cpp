#include "training/fixed_weights.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/buffer.hpp"

namespace crfkit {
namespace {

// Where the fixed weights stand among all D.
struct FixedPlace {
    std::int64_t begin, n_fixed, n_weights;  // K, D
    std::int64_t end() const { return begin + n_fixed; }

    // full [D] ← free [D − K], and what `fixed` gives for weight k of the fixed ones.
    template <class Fixed>
    void expand(const double* free, const Fixed& fixed, double* full) const {
        std::copy_n(free, begin, full);
        for (std::int64_t k = 0; k < n_fixed; ++k) full[begin + k] = fixed(k);
        std::copy(free + begin, free + n_weights - n_fixed, full + begin + n_fixed);
    }
    // free [D − K] ← full [D].
    void contract(const double* full, double* free) const {
        std::copy_n(full, begin, free);
        std::copy(full + begin + n_fixed, full + n_weights, free + begin);
    }
};

// The sequences of another source, without the fixed weights: no step touches these. Where the slots of the
// source are its weights, the slots here are the free weights; otherwise they are those of the source.
class FreeSequences final : public SequenceSource {
  public:
    FreeSequences(const SequenceSource& source, const FixedPlace& place, const std::vector<double>& weights)
        : source(source),
          place_(place),
          around_{place.begin, place.end()},
          weights_(weights),
          by_weight_(source.slots_are_weights()) {
        if (by_weight_) return;
        Buffer<double> full(place.n_weights);
        const std::vector<double> none(static_cast<std::size_t>(place.n_weights - place.n_fixed), 0.0);
        place.expand(none.data(), [&](std::int64_t k) { return weights[k]; }, full.data());
        fixed_.resize(source.n_slots());
        source.pack(full.data(), 0, fixed_.data());
        place.expand(none.data(), [](std::int64_t) { return 1.0; }, full.data());
        Buffer<double> marks(source.n_slots());
        source.pack(full.data(), 0, marks.data());
        is_fixed_.assign(marks.begin(), marks.end());
        const auto first = std::find(is_fixed_.begin(), is_fixed_.end(), 1);
        const auto last = std::find(is_fixed_.rbegin(), is_fixed_.rend(), 1);
        around_ = {first - is_fixed_.begin(), is_fixed_.rend() - last};
    }

    std::int64_t n_sequences() const override { return source.n_sequences(); }
    std::int64_t n_slots() const override { return source.n_slots() - (by_weight_ ? place_.n_fixed : 0); }
    bool slots_are_weights() const override { return by_weight_; }
    void pack(const double* w, double other, double* slots) const override {
        if (by_weight_) {
            std::copy_n(w, n_slots(), slots);
            return;
        }
        Buffer<double> full(place_.n_weights);
        place_.expand(w, [&](std::int64_t) { return other; }, full.data());
        source.pack(full.data(), other, slots);
    }
    void unpack(const double* slots, double* w) const override {
        if (by_weight_) {
            std::copy_n(slots, n_slots(), w);
            return;
        }
        Buffer<double> full(place_.n_weights);
        source.unpack(slots, full.data());
        place_.contract(full.data(), w);
    }
    void each_slot_range(const std::function<void(SlotRange)>& function) const override {
        source.each_slot_range([&](SlotRange range) {
            cut(range, [&](SlotRange part, bool is_fixed) {
                if (!is_fixed || !by_weight_) function(slots_of(part));
            });
        });
    }
    std::unique_ptr<SequenceLoss> open() const override;

    // Calls function(part, whether it is fixed) for the longest parts of a range of the source that are all
    // fixed or all free.
    template <class Function>
    void cut(SlotRange range, const Function& function) const {
        if (range.end <= around_.begin || around_.end <= range.begin) return function(range, false);
        for (std::int64_t begin = range.begin, end; begin < range.end; begin = end) {
            const bool fixed = is_fixed(begin);
            if (by_weight_)
                end = std::min(range.end, fixed                  ? place_.end()
                                          : begin < place_.begin ? place_.begin
                                                                 : range.end);
            else
                for (end = begin + 1; end < range.end && is_fixed(end) == fixed;) ++end;
            function(SlotRange{begin, end}, fixed);
        }
    }
    // The slots here of a part that is free.
    SlotRange slots_of(SlotRange part) const {
        const std::int64_t shift = by_weight_ && part.begin >= place_.end() ? place_.n_fixed : 0;
        return {part.begin - shift, part.end - shift};
    }
    // The weights of a part that is fixed.
    const double* fixed(SlotRange part) const {
        return by_weight_ ? weights_.data() + part.begin - place_.begin : fixed_.data() + part.begin;
    }

    const SequenceSource& source;

  private:
    bool is_fixed(std::int64_t slot) const {
        return by_weight_ ? slot >= place_.begin && slot < place_.end() : is_fixed_[slot] != 0;
    }

    const FixedPlace place_;
    SlotRange around_;                    // from the first fixed slot of the source to the last
    const std::vector<double>& weights_;  // [K]
    const bool by_weight_;
    // By slot of the source, where it is not a weight: the fixed weights, 0 where free; whether one is fixed.
    Buffer<double> fixed_;
    std::vector<std::uint8_t> is_fixed_;
};

// One of them: the weights that its sequence touches, without the fixed ones.
class FreeSequence final : public SequenceLoss {
  public:
    explicit FreeSequence(const FreeSequences& source) : source_(source), sequence_(source.source.open()) {}

    void load(std::int64_t n) override {
        sequence_->load(n);
        clear();
        weights_.resize(sequence_->n_weights());
        gradient_.resize(sequence_->n_weights());
        parts_.clear();
        std::int64_t at = 0;  // among the weights of the sequence
        for (const SlotRange range : sequence_->ranges()) {
            source_.cut(range, [&](SlotRange part, bool is_fixed) {
                const std::int64_t size = part.end - part.begin, here = at + part.begin - range.begin;
                if (is_fixed) {
                    std::copy_n(source_.fixed(part), size, weights_.data() + here);
                    return;
                }
                const SlotRange slots = source_.slots_of(part);
                touch(slots.begin, slots.end);
                if (!parts_.empty() && parts_.back().end == here)
                    parts_.back().end += size;
                else
                    parts_.push_back({here, here + size});
            });
            at += range.end - range.begin;
        }
    }
    std::int64_t n_residuals() const override { return sequence_->n_residuals(); }
    double differentiate(const double* weights, double* residuals) override {
        for (const SlotRange part : parts_) {
            std::copy_n(weights, part.end - part.begin, weights_.data() + part.begin);
            weights += part.end - part.begin;
        }
        return sequence_->differentiate(weights_.data(), residuals);
    }
    void gradient(const double* residuals, double* gradient) override {
        sequence_->gradient(residuals, gradient_.data());
        for (const SlotRange part : parts_)
            gradient = std::copy(gradient_.data() + part.begin, gradient_.data() + part.end, gradient);
    }

  private:
    const FreeSequences& source_;
    std::unique_ptr<SequenceLoss> sequence_;
    std::vector<SlotRange> parts_;  // the free ones among the weights of the sequence
    Buffer<double> weights_, gradient_;
};

std::unique_ptr<SequenceLoss> FreeSequences::open() const { return std::make_unique<FreeSequence>(*this); }

class FixedLoss final : public DataLoss {
  public:
    FixedLoss(std::shared_ptr<DataLoss> loss, std::int64_t begin, std::vector<double> fixed)
        : DataLoss(loss->n_weights - static_cast<std::int64_t>(fixed.size()), loss->n_sequences,
                   loss->n_threads),
          loss_(std::move(loss)),
          fixed_(std::move(fixed)),
          place_{begin, static_cast<std::int64_t>(fixed_.size()), loss_->n_weights},
          w_(loss_->n_weights),
          v_(loss_->n_weights),
          out_(loss_->n_weights) {}

    double evaluate(const double* w, double* gradient) override {
        set_weights(w);
        const double value = loss_->evaluate(w_.data(), out_.data());
        place_.contract(out_.data(), gradient);
        return value;
    }
    void hessian_vector(const double* w, const double* v, double* out) override {
        set_weights(w);
        place_.expand(v, [](std::int64_t) { return 0.0; }, v_.data());
        loss_->hessian_vector(w_.data(), v_.data(), out_.data());
        place_.contract(out_.data(), out);
    }
    bool refine() override { return loss_->refine(); }
    const SequenceSource& sequences() override {
        if (!sequences_) sequences_ = std::make_unique<FreeSequences>(loss_->sequences(), place_, fixed_);
        return *sequences_;
    }
    std::vector<std::int64_t> shard_ptr() const override { return loss_->shard_ptr(); }
    std::unique_ptr<Mistakes> mistakes(const double*) override {
        throw std::invalid_argument(
            "a loss with fixed weights has no mistakes: it is a loss of probabilities");
    }

  private:
    void set_weights(const double* w) {
        place_.expand(w, [&](std::int64_t k) { return fixed_[k]; }, w_.data());
    }

    const std::shared_ptr<DataLoss> loss_;
    const std::vector<double> fixed_;
    const FixedPlace place_;
    Buffer<double> w_, v_, out_;  // [D]
    std::unique_ptr<FreeSequences> sequences_;
};

}  // namespace

std::shared_ptr<DataLoss> fix_weights(std::shared_ptr<DataLoss> loss, std::int64_t begin,
                                      std::vector<double> fixed) {
    const auto n_fixed = static_cast<std::int64_t>(fixed.size());
    if (begin < 0 || begin + n_fixed > loss->n_weights)
        throw std::invalid_argument("weights " + std::to_string(begin) + " to " +
                                    std::to_string(begin + n_fixed - 1) + " were to be fixed of " +
                                    std::to_string(loss->n_weights));
    return std::make_shared<FixedLoss>(std::move(loss), begin, std::move(fixed));
}

}  // namespace crfkit
