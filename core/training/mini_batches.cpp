#include "training/mini_batches.hpp"

#include <stdexcept>

#include "training/step_rule.hpp"

namespace crfkit {

void MiniBatches::check(const SequenceSource& source) const {
    if (batch < 1) throw std::invalid_argument("batch must be at least 1");
    check_order(order, source.n_sequences());
}

void BatchGradient::reset(std::int64_t n_slots) {
    sum_.assign(n_slots, 0.0);
    met_.assign(static_cast<std::size_t>(n_slots), 0);
}

void BatchGradient::add(const std::vector<SlotRange>& ranges, const double* gradient) {
    for (const SlotRange range : ranges) {
        if (met_[range.begin]) continue;
        met_[range.begin] = 1;
        ranges_.push_back(range);
        size_ += range.end - range.begin;
    }
    step_kernels().add(ranges.data(), static_cast<std::int64_t>(ranges.size()), gradient, 1.0, sum_.data());
}

void BatchGradient::gather() {
    gathered_.resize(size_);
    step_kernels().read(ranges_.data(), static_cast<std::int64_t>(ranges_.size()), sum_.data(), 1.0,
                        gathered_.data());
}

void BatchGradient::clear() {
    for (const SlotRange range : ranges_) {
        met_[range.begin] = 0;
        std::fill(sum_.data() + range.begin, sum_.data() + range.end, 0.0);
    }
    ranges_.clear();
    size_ = 0;
}

}  // namespace crfkit
