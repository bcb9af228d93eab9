// Which features of arcs have weights, and where these lie in w[D].
//
//   w = [one weight for each feature of arcs | one for each (feature of labels, label) that was seen
//   together | blocks of weights of word vectors]
//   score(h, m, r) = Σ_{f of arc} w_f + Σ_{g of its label} w_{g,r} + what vectors add (vector_layout.hpp)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/key_hash.hpp"
#include "trees/treebank.hpp"
#include "trees/vector_layout.hpp"

namespace crfkit {

class ArcLayout {
  public:
    // ptr [features of labels + 1]: the labels of each, ascending; keys ascend. Throws std::invalid_argument.
    ArcLayout(std::int32_t n_labels, std::vector<Key> of_arcs, std::vector<Key> of_labels,
              std::vector<std::int64_t> ptr, std::vector<std::int32_t> of_pairs, bool coarse = false,
              VectorLayout of_vectors = {});
    // The features of the arcs whose heads are known, if they are seen at least `min_count` times. Of order
    // 2: those of siblings and grandparents too, where all heads of a sentence are known; they are features
    // of arcs here.
    static ArcLayout learn(const Treebank& treebank, const KnownTrees& trees, std::int32_t n_labels,
                           std::int64_t min_count, int order = 1);

    // For a model that prunes arcs: features of few templates, and none of labels, of which there is one.
    static ArcLayout learn_coarse(const Treebank& treebank, const KnownTrees& trees, std::int64_t min_count);

    // Whether the features are those of few templates (ArcFeatures::coarse_arc).
    bool is_coarse() const { return coarse_; }
    std::int32_t n_labels() const { return n_labels_; }
    std::int64_t n_arc_features() const { return static_cast<std::int64_t>(arc_keys.size()); }
    std::int64_t n_label_features() const { return static_cast<std::int64_t>(label_keys.size()); }
    std::int64_t n_weights() const { return first_vector_weight() + vectors.n_weights(); }
    // Where the weights of word vectors begin in w.
    std::int64_t first_vector_weight() const {
        return n_arc_features() + static_cast<std::int64_t>(pair_labels.size());
    }
    // Where the weights of a feature of labels begin in w.
    std::int64_t first_weight(std::int64_t feature) const { return n_arc_features() + pair_ptr[feature]; }
    std::span<const std::int32_t> labels_of(std::int64_t feature) const {
        return {pair_labels.data() + pair_ptr[feature],
                static_cast<std::size_t>(pair_ptr[feature + 1] - pair_ptr[feature])};
    }

    // Calls function for the weights of each feature: ranges of w that sentences touch together.
    template <class Function>
    void each_slot_range(const Function& function) const {
        for (std::int64_t d = 0; d < n_arc_features(); ++d) function({d, d + 1});
        for (std::int64_t f = 0; f < n_label_features(); ++f)
            if (pair_ptr[f] < pair_ptr[f + 1]) function({first_weight(f), first_weight(f + 1)});
        for (std::int64_t b = 0; b < vectors.n_blocks(); ++b)
            if (vectors.n_rows(b) > 0)
                function({first_vector_weight() + vectors.size * vectors.ptr[b],
                          first_vector_weight() + vectors.size * vectors.ptr[b + 1]});
    }

    const std::vector<Key> arc_keys, label_keys;  // ascending
    const std::vector<std::int64_t> pair_ptr;
    const std::vector<std::int32_t> pair_labels;
    const VectorLayout vectors;

  private:
    const std::int32_t n_labels_;
    const bool coarse_;
};

}  // namespace crfkit
