#include "feature_writer.hpp"

#include <algorithm>
#include <utility>

namespace crfkit {

FeatureWriter::FeatureWriter(Vocabulary& vocabulary, bool grow)
    : vocabulary_(vocabulary), grow_(grow), scratch_(16384) {}

void FeatureWriter::make_room(std::size_t most) {
    flush();
    if (most > scratch_.size()) scratch_.resize(std::max(most, scratch_.size() * 2));
}

void FeatureWriter::flush() {
    std::array<std::int32_t, batch> ids;
    for (int i = 0; i < n_waiting_; ++i) {
        ids[i] = vocabulary_.guess(waiting_[i].hash);
        if (ids[i] != Vocabulary::absent) vocabulary_.prefetch_end(ids[i]);
    }
    for (int i = 0; i < n_waiting_; ++i) {
        if (ids[i] != Vocabulary::absent) vocabulary_.prefetch_name(ids[i]);
    }
    if (!all_ones_ && arrays_.values.empty()) arrays_.values.assign(arrays_.ids.size(), 1.0);
    int ended = 0;
    for (int i = 0; i < n_waiting_; ++i) {
        for (; ended < n_ended_ && ended_[ended] == i; ++ended)
            arrays_.site_ptr.push_back(arrays_.ids.size());
        const std::string_view name{waiting_[i].data, waiting_[i].length};
        std::int32_t id = ids[i];
        if (id == Vocabulary::absent && !grow_) continue;
        if (id == Vocabulary::absent || vocabulary_.name(id) != name) {
            id = grow_ ? vocabulary_.add(name, waiting_[i].hash) : vocabulary_.find(name, waiting_[i].hash);
            if (id == Vocabulary::absent) continue;
        }
        arrays_.ids.push_back(id);
        if (!all_ones_) arrays_.values.push_back(values_[i]);
    }
    for (; ended < n_ended_; ++ended) arrays_.site_ptr.push_back(arrays_.ids.size());
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
