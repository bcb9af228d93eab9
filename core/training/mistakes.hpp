// Where a model is wrong: the best output of a sequence at the current weights against the right one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"

namespace crfkit {

// d = φ(right) − φ(predicted) for one sequence, φ(y) being how often label sequence y has each weight. It
// costs what differs, not D.
class Difference {
  public:
    explicit Difference(std::int64_t n_weights) { place_.assign(n_weights, -1); }

    void add(std::int64_t weight, double count) {
        std::int32_t& place = place_[weight];
        if (place < 0) {
            place = static_cast<std::int32_t>(entries_.size());
            entries_.push_back({weight, count});
        } else {
            entries_[place].count += count;
        }
    }
    // Calls function(weight, count) once for every weight whose count is not 0.
    template <class Function>
    void each(const Function& function) const {
        for (const Entry& entry : entries_)
            if (entry.count != 0) function(entry.weight, entry.count);
    }
    void clear() {
        for (const Entry& entry : entries_) place_[entry.weight] = -1;
        entries_.clear();
    }

  private:
    struct Entry {
        std::int64_t weight;
        double count;
    };
    Buffer<std::int32_t> place_;  // [D] of a weight among the entries, −1: none
    std::vector<Entry> entries_;
};

// Finds the mistakes of a data set at weights w [D], which must outlive it. The right outputs are those of
// the annotation; where it leaves a choice, the best ones that it admits.
class Mistakes {
  public:
    virtual ~Mistakes() = default;

    virtual std::int64_t n_sequences() const = 0;
    // How often sequence n counts.
    virtual double weight(std::int64_t n) const = 0;
    // To be called when any weights may have changed.
    virtual void read_weights() = 0;
    // Sequence n is asked for soon: what it reads may be fetched.
    virtual void expect(std::int64_t) const {}
    // Finds the best output of sequence n and adds its mistake to `difference`, which is empty. Returns the
    // number of positions where it is wrong.
    virtual std::int64_t find(std::int64_t n, Difference& difference) = 0;
    // To be called when the weights of the mistake found last have changed.
    virtual void read_changes(const Difference& difference) = 0;
};

}  // namespace crfkit
