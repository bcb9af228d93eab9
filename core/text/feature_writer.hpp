// From names of features, position after position, to flat lists of ids, or to names that are looked up
// later.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/feature_arrays.hpp"
#include "text/named_positions.hpp"
#include "text/vocabulary.hpp"

namespace crfkit {

// Names wait in a batch until several positions' worth of them are there; then they are looked up together,
// so that the processor fetches many slots and names from memory at once. Unknown names get an id when
// `grow`, else they are dropped. A writer without a vocabulary hands the names themselves to NamedPositions.
//
// A name given to push() is not copied: its bytes must stay until flush(). A name can also be composed in the
// writer's own memory: write it to compose(most) and hand it in with push_composed().
class FeatureWriter {
  public:
    FeatureWriter(Vocabulary& vocabulary, bool grow);
    explicit FeatureWriter(NamedPositions& names);

    [[gnu::always_inline]] void push(std::string_view name, double value = 1.0) {
        if (n_waiting_ == batch) flush();
        put(name, value);
    }
    // Hands the names of further positions to another object, for a writer without a vocabulary.
    void redirect(NamedPositions& names) { names_ = &names; }
    // Whether names are copied by push() already.
    bool copies() const { return names_ != nullptr; }
    // Space for `most` bytes, valid until the next call of any method but push_composed.
    char* compose(std::size_t most) {
        if (n_waiting_ == batch || scratch_used_ + most > scratch_.size()) make_space(most);
        return scratch_.data() + scratch_used_;
    }
    void push_composed(std::size_t length, double value = 1.0) {
        put({scratch_.data() + scratch_used_, length}, value);
        scratch_used_ += length;
    }
    void end_position() {
        ++n_positions_;
        if (names_) return names_->end_position();
        if (n_ended_ == batch) flush();
        ended_[n_ended_++] = n_waiting_;
    }
    // Looks up everything that waits; afterwards the writer needs none of the bytes it was given.
    void flush();
    std::int64_t n_positions() const { return n_positions_; }
    FeatureArrays finish();  // flushes, too; empty without a vocabulary

  private:
    static constexpr int batch = Vocabulary::batch;

    [[gnu::always_inline]] void put(std::string_view name, double value) {
        if (names_) return names_->add(name, value);
        if (const FeatureHash& buckets = vocabulary_->feature_hash(); buckets.bits > 0)
            name = buckets.write(name, bucket_names_[n_waiting_]);
        const std::uint64_t hash = Vocabulary::hash(name);
        vocabulary_->prefetch_slot(hash);
        waiting_[n_waiting_] = {name.data(), name.size(), hash};
        values_[n_waiting_++] = value;
        all_ones_ &= value == 1.0;
    }
    void make_space(std::size_t most);

    Vocabulary* vocabulary_ = nullptr;
    NamedPositions* names_ = nullptr;  // where names go that are not looked up
    bool grow_ = false;
    bool all_ones_ = true;
    int n_waiting_ = 0;
    int n_ended_ = 0;
    std::int64_t n_positions_ = 0;
    std::array<NameKey, batch> waiting_;
    std::array<double, batch> values_;
    std::array<FeatureHash::Name, batch> bucket_names_;  // where features are hashed
    std::array<int, batch> ended_;                       // positions that ended before waiting name ended_[k]
    std::vector<char> scratch_;
    std::size_t scratch_used_ = 0;
    FeatureArrays arrays_;
};

}  // namespace crfkit
