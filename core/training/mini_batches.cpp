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

void BatchGradient::add(const std::vector<Run>& runs, const double* gradient) {
    for (const Run run : runs) {
        if (met_[run.begin]) continue;
        met_[run.begin] = 1;
        runs_.push_back(run);
        size_ += run.end - run.begin;
    }
    step_kernels().add(runs.data(), static_cast<std::int64_t>(runs.size()), gradient, 1.0, sum_.data());
}

void BatchGradient::gather() {
    gathered_.resize(size_);
    step_kernels().read(runs_.data(), static_cast<std::int64_t>(runs_.size()), sum_.data(), 1.0,
                        gathered_.data());
}

void BatchGradient::clear() {
    for (const Run run : runs_) {
        met_[run.begin] = 0;
        std::fill(sum_.data() + run.begin, sum_.data() + run.end, 0.0);
    }
    runs_.clear();
    size_ = 0;
}

}  // namespace crfkit
