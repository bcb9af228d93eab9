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
    int ended = 0;
    for (int i = 0; i < n_waiting_; ++i) {
        for (; ended < n_ended_ && ended_[ended] == i; ++ended)
            arrays_.position_ptr.push_back(arrays_.ids.size());
        if (ids[i] == Vocabulary::absent) {
            if (!grow_) continue;
            ids[i] = vocabulary_->add(waiting_[i].name(), waiting_[i].hash);
        }
        arrays_.ids.push_back(ids[i]);
        if (!all_ones_) arrays_.values.push_back(values_[i]);
    }
    for (; ended < n_ended_; ++ended) arrays_.position_ptr.push_back(arrays_.ids.size());
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
