// What the mistakes of chains have in common, however their best labels are found.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/annotation.hpp"
#include "data/arc_model.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "training/mistakes.hpp"

namespace crfkit {

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

}  // namespace crfkit
