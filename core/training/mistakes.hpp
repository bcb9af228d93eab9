// Where a model is wrong: the best labels of a sequence at the current weights against the right ones.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "data/annotation.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "lattice/arc_model.hpp"

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

// The mistakes of a chain.
class ChainMistakes : public Mistakes {
  public:
    ChainMistakes(const Layout& layout, const Design& design, const Annotation& gold, const ArcModel& arcs,
                  const double* w)
        : layout_(layout), design_(design), gold_(gold), arcs_(arcs), w_(w) {}

    std::int64_t n_sequences() const override { return design_.n_sequences(); }
    double weight(std::int64_t n) const override { return gold_.weights[n]; }
    std::int64_t find(std::int64_t n, Difference& difference) final;

  protected:
    // The best labels of sequence n, into predicted_.
    virtual void predict(std::int64_t n) = 0;
    // After predict: the best labels that the annotation admits, into right_.
    virtual void correct(std::int64_t n) = 0;
    // Adds the weights that score a label at a position of the data set, `sign` times.
    virtual void add_position(std::int64_t position, std::int32_t label, double sign,
                              Difference& difference) = 0;

    const Layout& layout_;
    const Design& design_;
    const Annotation& gold_;
    const ArcModel& arcs_;
    const double* w_;
    std::vector<std::int32_t> right_, predicted_;  // [T] of the sequence labelled last

  private:
    void add_arcs(std::int64_t first, const std::vector<std::int32_t>& labels, double sign,
                  Difference& difference) const;
    void add_arc_features(std::int64_t position, std::int32_t pair, double sign,
                          Difference& difference) const;
};

// Σ of the weights of a list.
inline double sum_of(std::span<const std::int64_t> weights, const double* w) {
    double sum = 0;
    for (const std::int64_t i : weights) sum += w[i];
    return sum;
}

// The way that suits a design. `single_precision`: rows of labels are scored in single precision.
std::unique_ptr<Mistakes> mistakes_of(const Layout& layout, const Design& design, const Annotation& gold,
                                      const ArcModel& arcs, const double* w, bool single_precision,
                                      int n_threads);

}  // namespace crfkit
