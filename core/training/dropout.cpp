#include "training/dropout.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/buffer.hpp"

namespace crfkit {
namespace {

// SplitMix64 (Steele et al. 2014): the output function of a state.
constexpr std::uint64_t mixed(std::uint64_t z) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

class DroppedSequences final : public SequenceSource {
  public:
    DroppedSequences(const SequenceSource& source, const Dropout& dropout)
        : source(source), dropout(dropout) {
        const std::vector<double> numbers(dropout.features.begin(), dropout.features.end());
        Buffer<double> slots(source.n_slots());
        source.pack(numbers.data(), -1, slots.data());
        features.assign(slots.begin(), slots.end());
    }

    std::int64_t n_sequences() const override { return source.n_sequences(); }
    std::int64_t n_slots() const override { return source.n_slots(); }
    bool slots_are_weights() const override { return source.slots_are_weights(); }
    void pack(const double* w, double other, double* slots) const override { source.pack(w, other, slots); }
    void unpack(const double* slots, double* w) const override { source.unpack(slots, w); }
    void each_slot_range(const std::function<void(SlotRange)>& function) const override {
        source.each_slot_range(function);
    }
    std::unique_ptr<SequenceLoss> open() const override;

    const SequenceSource& source;
    const Dropout& dropout;
    std::vector<std::int32_t> features;  // by slot
};

class DroppedSequence final : public SequenceLoss {
  public:
    explicit DroppedSequence(const DroppedSequences& source)
        : source_(source), sequence_(source.source.open()) {}

    void load(std::int64_t n) override {
        sequence_->load(n);
        clear();
        factors_.resize(sequence_->n_weights());
        weights_.resize(sequence_->n_weights());
        double* factor = factors_.data();
        for (const SlotRange range : sequence_->ranges()) {
            touch(range.begin, range.end);
            std::int32_t before = -1;
            double last = 1;
            for (std::int64_t slot = range.begin; slot < range.end; ++slot) {
                const std::int32_t f = source_.features[slot];
                if (f != before) {
                    last = f < 0 ? 1 : source_.dropout.factor(n, f);
                    before = f;
                }
                *factor++ = last;
            }
        }
    }
    std::int64_t n_residuals() const override { return sequence_->n_residuals(); }
    double differentiate(const double* weights, double* residuals) override {
        for (std::int64_t i = 0; i < n_weights(); ++i) weights_[i] = weights[i] * factors_[i];
        return sequence_->differentiate(weights_.data(), residuals);
    }
    void gradient(const double* residuals, double* gradient) override {
        sequence_->gradient(residuals, gradient);
        for (std::int64_t i = 0; i < n_weights(); ++i) gradient[i] *= factors_[i];
    }

  private:
    const DroppedSequences& source_;
    std::unique_ptr<SequenceLoss> sequence_;
    Buffer<double> factors_, weights_;  // of what the sequence touches
};

std::unique_ptr<SequenceLoss> DroppedSequences::open() const {
    return std::make_unique<DroppedSequence>(*this);
}

}  // namespace

double Dropout::factor(std::int64_t n, std::int32_t f) const {
    const std::uint64_t key =
        mixed(mixed(seed + static_cast<std::uint64_t>(n)) + static_cast<std::uint64_t>(f));
    const double uniform = static_cast<double>(key >> 11) * 0x1p-53;  // from 0 on, below 1
    return uniform < rate ? 0 : 1 / (1 - rate);
}

std::unique_ptr<SequenceSource> drop_features(const SequenceSource& source, const Dropout& dropout,
                                              std::int64_t n_weights) {
    if (static_cast<std::int64_t>(dropout.features.size()) != n_weights)
        throw std::invalid_argument("there are " + std::to_string(dropout.features.size()) +
                                    " features of weights, expected " + std::to_string(n_weights));
    if (!(dropout.rate >= 0 && dropout.rate < 1))
        throw std::invalid_argument("the rate of dropout must be from 0 on and below 1");
    return std::make_unique<DroppedSequences>(source, dropout);
}

}  // namespace crfkit
