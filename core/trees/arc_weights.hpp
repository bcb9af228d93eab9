// The weights of a trained parser, where the keys of features find them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/buffer.hpp"
#include "trees/arc_layout.hpp"
#include "trees/key_table.hpp"

namespace crfkit {

class ArcWeights {
  public:
    // w [D].
    ArcWeights(std::shared_ptr<const ArcLayout> layout, const double* w);

    const ArcLayout& layout() const { return *layout_; }

    // Calls found(weight) for the features of arcs among the keys, which are used up.
    template <class Function>
    void each_of_arcs(KeyList& keys, const Function& found) const {
        arcs_.each(keys, found);
    }
    // Σ of these weights.
    double sum(KeyList& keys) const {
        double sum = 0;
        arcs_.each(keys, [&](double weight) { sum += weight; });
        return sum;
    }

    // The weights of a feature of labels: places in one array.
    struct Range {
        std::uint32_t begin, end;
    };
    // row [R] += the weights of features of labels among the keys, which are used up; `ranges` is working
    // memory.
    void add_labels(KeyList& keys, std::vector<Range>& ranges, double* row) const {
        ranges.clear();
        labels_.each(keys, [&](Range range) {
            __builtin_prefetch(of_labels_.data() + range.begin);
            ranges.push_back(range);
        });
        for (const auto [begin, end] : ranges)
            for (std::uint32_t i = begin; i < end; ++i) row[of_labels_[i].label] += of_labels_[i].weight;
    }

    // The weights of word vectors.
    const double* of_vectors() const { return of_vectors_.data(); }

  private:
    struct LabelWeight {
        double weight;
        std::int32_t label;
    };

    std::shared_ptr<const ArcLayout> layout_;
    KeyTable<double> arcs_;
    KeyTable<Range> labels_;
    Buffer<LabelWeight> of_labels_;  // [pairs of a feature and a label]
    std::vector<double> of_vectors_;
};

}  // namespace crfkit
