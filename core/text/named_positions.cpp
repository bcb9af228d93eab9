#include "text/named_positions.hpp"

#include <algorithm>
#include <array>

namespace crfkit {

NamedPositions::NamedPositions() {  // enough for a sentence
    bytes_.reserve(8192);
    ends_.reserve(1024);
}

void NamedPositions::clear() {
    bytes_.clear();
    ends_.resize(1);
    values_.clear();
    position_ptr_.resize(1);
}

void NamedPositions::compact() {
    bytes_.shrink_to_fit();
    ends_.shrink_to_fit();
    values_.shrink_to_fit();
    position_ptr_.shrink_to_fit();
}

void NamedPositions::add_value(double value) {
    values_.resize(static_cast<std::size_t>(size()), 1.0);
    values_.push_back(value);
}

template <class Unknown>
FeatureArrays NamedPositions::numbered(const Vocabulary& vocabulary, const Unknown& unknown) const {
    std::array<NameKey, Vocabulary::batch> keys;
    std::array<std::int32_t, Vocabulary::batch> ids;
    std::array<FeatureHash::Name, Vocabulary::batch> bucket_names;
    const FeatureHash& buckets = vocabulary.feature_hash();
    FeatureArrays found;
    found.position_ptr.reserve(position_ptr_.size());
    found.ids.reserve(ends_.size());
    if (has_values()) found.values.reserve(ends_.size());
    auto end = position_ptr_.begin() + 1;
    for (std::int64_t first = 0; first < size(); first += Vocabulary::batch) {
        const std::int64_t n = std::min<std::int64_t>(Vocabulary::batch, size() - first);
        for (std::int64_t i = 0; i < n; ++i) {
            std::string_view wanted = name(first + i);
            if (buckets.bits > 0) wanted = buckets.write(wanted, bucket_names[i]);
            keys[i] = {wanted.data(), wanted.size(), Vocabulary::hash(wanted)};
            vocabulary.prefetch_slot(keys[i].hash);
        }
        vocabulary.find_batch({keys.data(), static_cast<std::size_t>(n)}, ids.data());
        for (std::int64_t i = 0; i < n; ++i) {
            for (; *end == first + i; ++end) found.position_ptr.push_back(found.ids.size());
            if (ids[i] == Vocabulary::absent) ids[i] = unknown(keys[i]);
            if (ids[i] == Vocabulary::absent) continue;
            found.ids.push_back(ids[i]);
            if (has_values()) found.values.push_back(values_[first + i]);
        }
    }
    for (; end != position_ptr_.end(); ++end) found.position_ptr.push_back(found.ids.size());
    return found;
}

FeatureArrays NamedPositions::look_up(const Vocabulary& vocabulary) const {
    return numbered(vocabulary, [](const NameKey&) { return Vocabulary::absent; });
}

FeatureArrays NamedPositions::add_to(Vocabulary& vocabulary) const {
    return numbered(vocabulary, [&](const NameKey& key) { return vocabulary.add(key.name(), key.hash); });
}

}  // namespace crfkit
