#include "text/feature_writer.hpp"

#include <algorithm>
#include <utility>

namespace crfkit {

namespace {

constexpr std::size_t first_scratch = 16384;  // bytes

}  // namespace

FeatureWriter::FeatureWriter(Vocabulary& vocabulary, bool grow)
    : vocabulary_(&vocabulary), grow_(grow), scratch_(first_scratch) {}

FeatureWriter::FeatureWriter(NamedPositions& names) : names_(&names), scratch_(first_scratch) {}

void FeatureWriter::make_space(std::size_t most) {
    flush();
    if (most > scratch_.size()) scratch_.resize(std::max(most, scratch_.size() * 2));
}

void FeatureWriter::flush() {
    if (!vocabulary_) {  // nothing waits
        scratch_used_ = 0;
        return;
    }
    std::array<std::int32_t, batch> ids;
    vocabulary_->find_batch({waiting_.data(), static_cast<std::size_t>(n_waiting_)}, ids.data());
    if (!all_ones_ && arrays_.values.empty()) arrays_.values.assign(arrays_.ids.size(), 1.0);
    if (grow_) {
        for (int i = 0; i < n_waiting_; ++i)
            if (ids[i] == Vocabulary::absent) ids[i] = vocabulary_->add(waiting_[i].name(), waiting_[i].hash);
    }
    // Which names are known looks like chance: the ids of all are written, and the unknown ones overwritten.
    std::size_t n = arrays_.ids.size();
    arrays_.ids.resize(n + static_cast<std::size_t>(n_waiting_));
    if (!all_ones_) arrays_.values.resize(arrays_.ids.size());
    int i = 0;
    const auto keep_until = [&](int end) {
        for (; i < end; ++i) {
            arrays_.ids[n] = ids[i];
            if (!all_ones_) arrays_.values[n] = values_[i];
            n += ids[i] != Vocabulary::absent;
        }
    };
    for (int ended = 0; ended < n_ended_; ++ended) {
        keep_until(ended_[ended]);
        arrays_.position_ptr.push_back(static_cast<std::int64_t>(n));
    }
    keep_until(n_waiting_);
    arrays_.ids.resize(n);
    if (!all_ones_) arrays_.values.resize(n);
    n_waiting_ = 0;
    n_ended_ = 0;
    scratch_used_ = 0;
}

FeatureArrays FeatureWriter::finish() {
    flush();
    const auto is_one = [](double value) { return value == 1.0; };
    if (std::all_of(arrays_.values.begin(), arrays_.values.end(), is_one)) arrays_.values = {};
    return std::exchange(arrays_, FeatureArrays{});
}

}  // namespace crfkit
