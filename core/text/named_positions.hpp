// Positions whose features are still names: read once, looked up in any vocabulary, by any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/feature_arrays.hpp"
#include "text/vocabulary.hpp"

namespace crfkit {

class NamedPositions {
  public:
    NamedPositions();

    void add(std::string_view name, double value) {
        if (value != 1.0 || has_values()) add_value(value);
        bytes_.insert(bytes_.end(), name.begin(), name.end());
        ends_.push_back(bytes_.size());
    }
    void end_position() { position_ptr_.push_back(size()); }

    // Forgets all positions, and keeps the memory.
    void clear();
    // Frees the memory that is kept for more names.
    void compact();

    std::int64_t n_names() const { return size(); }
    std::string_view name(std::int64_t i) const {
        return {bytes_.data() + ends_[i], static_cast<std::size_t>(ends_[i + 1] - ends_[i])};
    }
    double value(std::int64_t i) const { return has_values() ? values_[i] : 1.0; }
    // The first name of position t; that of the end for t = n_positions().
    std::int64_t first(std::int64_t t) const { return position_ptr_[t]; }
    std::int64_t n_positions() const { return static_cast<std::int64_t>(position_ptr_.size()) - 1; }

    // The names as ids of a vocabulary, without those that it does not have.
    FeatureArrays look_up(const Vocabulary& vocabulary) const;
    // The same where find(name) is the id of a name, or Vocabulary::absent.
    template <class Find>
    FeatureArrays look_up_each(const Find& find) const {
        FeatureArrays found;
        found.position_ptr.reserve(position_ptr_.size());
        for (std::size_t t = 0; t + 1 < position_ptr_.size(); ++t) {
            for (std::int64_t i = position_ptr_[t]; i < position_ptr_[t + 1]; ++i) {
                const std::int32_t id = find(name(i));
                if (id == Vocabulary::absent) continue;
                found.ids.push_back(id);
                if (has_values()) found.values.push_back(values_[i]);
            }
            found.position_ptr.push_back(static_cast<std::int64_t>(found.ids.size()));
        }
        return found;
    }
    // The names as ids of a vocabulary, which grows by those that it does not have.
    FeatureArrays add_to(Vocabulary& vocabulary) const;

  private:
    // unknown(key) is the id of a name that the vocabulary does not have, or absent.
    template <class Unknown>
    FeatureArrays numbered(const Vocabulary& vocabulary, const Unknown& unknown) const;
    std::int64_t size() const { return static_cast<std::int64_t>(ends_.size()) - 1; }
    bool has_values() const { return !values_.empty(); }
    void add_value(double value);

    std::vector<char> bytes_;                    // of all names
    std::vector<std::uint64_t> ends_{0};         // [nnz + 1] name i is bytes[ends[i] : ends[i + 1]]
    std::vector<double> values_;                 // [nnz], or empty while every value is 1
    std::vector<std::int64_t> position_ptr_{0};  // [T + 1]
};

}  // namespace crfkit
