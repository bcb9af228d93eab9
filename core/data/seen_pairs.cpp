#include "data/seen_pairs.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "base/interruption.hpp"
#include "base/key_hash.hpp"
#include "base/lists.hpp"

namespace crfkit {

namespace {

// A label (or a pair of labels, written as two digits in base L) that is possible at a position.
struct Sighting {
    std::int64_t position;
    std::int32_t before;  // 0 where only the label counts
    std::int32_t label;
};

// Stable counting sort by one digit in 0..n−1.
template <class Digit>
void sort_by(std::vector<Sighting>& sightings, std::int64_t n, Digit digit) {
    std::vector<std::int64_t> next(n + 1, 0);
    for (const auto& s : sightings) ++next[digit(s) + 1];
    for (std::int64_t i = 0; i < n; ++i) next[i + 1] += next[i];
    std::vector<Sighting> sorted(sightings.size());
    for (const auto& s : sightings) sorted[next[digit(s)]++] = s;
    sightings = std::move(sorted);
}

// Walks the sightings in the order of their keys, so that a feature meets each key in one run: it is new to
// the feature exactly when the feature's last key was another. Once to count, once to write.
SeenPairs collect(const FeatureSpans& features, const std::vector<Sighting>& sightings,
                  std::int64_t n_labels) {
    SeenPairs seen;
    seen.feature_ptr.assign(features.n_features + 1, 0);
    std::vector<std::int32_t> last(features.n_features);
    Pace pace;
    const auto visit = [&](const auto& note) {
        std::fill(last.begin(), last.end(), -1);
        for (const auto& s : sightings) {
            pace.work(16 * (features.position_ptr[s.position + 1] - features.position_ptr[s.position]));
            const auto key = static_cast<std::int32_t>(s.before * n_labels + s.label);
            for (std::int64_t k = features.position_ptr[s.position];
                 k < features.position_ptr[s.position + 1]; ++k) {
                const std::int32_t f = features.ids[k];
                if (last[f] != key) note(f, last[f] = key);
            }
        }
    };
    visit([&](std::int32_t f, std::int32_t) { ++seen.feature_ptr[f + 1]; });
    for (std::int64_t f = 0; f < features.n_features; ++f) seen.feature_ptr[f + 1] += seen.feature_ptr[f];
    seen.labels.resize(seen.feature_ptr.back());
    std::vector<std::int64_t> next(seen.feature_ptr.begin(), seen.feature_ptr.end() - 1);
    visit([&](std::int32_t f, std::int32_t key) { seen.labels[next[f]++] = key; });
    return seen;
}

}  // namespace

void FeatureSpans::check() const {
    if (n_features < 0) throw std::invalid_argument("n_features must not be negative");
    check_pointers(position_ptr, ids.size(), "position_ptr");
    check_range(ids, 0, n_features, "ids");
}

void LabelSpans::check(std::int64_t n_positions) const {
    if (static_cast<std::int64_t>(labels.size()) != n_positions) {
        throw std::invalid_argument("labels for " + std::to_string(labels.size()) +
                                    " positions, but there are " + std::to_string(n_positions));
    }
    if (n_labels < 0) throw std::invalid_argument("n_labels must not be negative");
    check_range(labels, -1, n_labels, "labels");
    if (!set_ptr.empty()) check_label_lists(set_ptr, set_labels, n_positions, n_labels, "set");
}

std::span<const std::int32_t> LabelSpans::at(std::int64_t position) const {
    if (labels[position] >= 0) return labels.subspan(position, 1);
    if (set_ptr.empty()) return {};
    return set_labels.subspan(set_ptr[position], set_ptr[position + 1] - set_ptr[position]);
}

SeenPairs seen_pairs(const FeatureSpans& features, const LabelSpans& labels) {
    features.check();
    labels.check(features.n_positions());
    std::vector<Sighting> sightings;
    sightings.reserve(labels.labels.size() + labels.set_labels.size());
    for (std::int64_t position = 0; position < features.n_positions(); ++position) {
        for (const std::int32_t label : labels.at(position)) sightings.push_back({position, 0, label});
    }
    sort_by(sightings, labels.n_labels, [](const Sighting& s) { return s.label; });
    return collect(features, sightings, labels.n_labels);
}

SeenPairs seen_arc_pairs(std::span<const std::int64_t> sequence_ptr, const FeatureSpans& features,
                         const LabelSpans& labels) {
    features.check();
    labels.check(features.n_positions());
    check_pointers(sequence_ptr, static_cast<std::size_t>(features.n_positions()), "sequence_ptr");
    if (labels.n_labels > 46340) throw std::invalid_argument("pairs of more than 46340 labels do not fit");
    std::vector<Sighting> sightings;
    for (std::size_t n = 0; n + 1 < sequence_ptr.size(); ++n) {
        for (std::int64_t position = sequence_ptr[n] + 1; position < sequence_ptr[n + 1]; ++position) {
            if (features.position_ptr[position] == features.position_ptr[position + 1]) continue;
            for (const std::int32_t before : labels.at(position - 1)) {
                for (const std::int32_t after : labels.at(position))
                    sightings.push_back({position, before, after});
            }
        }
    }
    sort_by(sightings, labels.n_labels, [](const Sighting& s) { return s.label; });
    sort_by(sightings, labels.n_labels, [](const Sighting& s) { return s.before; });
    return collect(features, sightings, labels.n_labels);
}

std::vector<std::int64_t> position_counts(const FeatureSpans& features) {
    features.check();
    std::vector<std::int64_t> counts(features.n_features, 0);
    std::vector<std::int64_t> last(features.n_features,
                                   -1);  // the last position at which the feature was met
    for (std::int64_t position = 0; position < features.n_positions(); ++position) {
        for (std::int64_t k = features.position_ptr[position]; k < features.position_ptr[position + 1]; ++k) {
            const std::int32_t f = features.ids[k];
            counts[f] += last[f] != position;
            last[f] = position;
        }
    }
    return counts;
}

std::vector<std::int32_t> first_equals(const FeatureSpans& features, std::span<const double> values,
                                       std::span<const std::int64_t> feature_ptr,
                                       std::span<const std::int32_t> labels) {
    check_pointers(feature_ptr, features.n_features, labels.size(), "feature_ptr");
    features.check();
    const auto n = static_cast<std::size_t>(features.n_features);
    if (!values.empty() && values.size() != features.ids.size())
        throw std::invalid_argument("values must have one entry for each id");
    struct Keys {
        Key one = 1, two = 2;
        void add(Key value) {
            one = extended(one, value);
            two = extended(two, ~value);
        }
    };
    std::vector<Keys> keys(n);
    for (std::int64_t t = 0; t < features.n_positions(); ++t)
        for (std::int64_t i = features.position_ptr[t]; i < features.position_ptr[t + 1]; ++i) {
            Keys& key = keys[features.ids[i]];
            key.add(static_cast<Key>(t));
            if (!values.empty()) key.add(std::bit_cast<Key>(values[i]));
        }
    std::unordered_map<Key, std::int32_t> seen;
    seen.reserve(n);
    std::vector<std::int32_t> first(n);
    for (std::size_t f = 0; f < n; ++f) {
        keys[f].add(~Key(0));  // no position
        for (const std::int32_t label : labels.subspan(feature_ptr[f], feature_ptr[f + 1] - feature_ptr[f]))
            keys[f].add(static_cast<Key>(label));
        const std::int32_t equal = seen.try_emplace(keys[f].one, static_cast<std::int32_t>(f)).first->second;
        first[f] = keys[equal].two == keys[f].two ? equal : static_cast<std::int32_t>(f);
    }
    return first;
}

FeatureArrays renamed(std::span<const std::int64_t> position_ptr, std::span<const std::int32_t> ids,
                      std::span<const double> values, std::span<const std::int32_t> remap) {
    const FeatureSpans features{position_ptr, ids, static_cast<std::int64_t>(remap.size())};
    features.check();
    if (!values.empty() && values.size() != features.ids.size()) {
        throw std::invalid_argument("values must have one entry for each id");
    }
    FeatureArrays kept;
    kept.position_ptr.reserve(features.position_ptr.size());
    for (std::int64_t position = 0; position < features.n_positions(); ++position) {
        for (std::int64_t k = features.position_ptr[position]; k < features.position_ptr[position + 1]; ++k) {
            const std::int32_t id = remap[features.ids[k]];
            if (id < 0) continue;
            kept.ids.push_back(id);
            if (!values.empty()) kept.values.push_back(values[k]);
        }
        kept.position_ptr.push_back(kept.ids.size());
    }
    return kept;
}

}  // namespace crfkit
