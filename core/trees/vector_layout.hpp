// Which values of word vectors have weights: dense blocks of features of arcs.
//
// A block looks at the vector v [K] of the head or of the dependent of an arc, beside the direction and the
// parts of speech of both words. It has K weights for arcs whatever their labels, and K for each label that
// it was seen with:
//
//   score(h, m, r) = … + Σ_{b of the arc} (w_b + w_{b,r}) · v(word of b)
//
// The root and words without a vector have v = 0.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "trees/arc_features.hpp"
#include "trees/treebank.hpp"

namespace crfkit {

// Whose vector a block looks at, and the number of its template.
struct VectorTemplate {
    Key number;
    bool of_head;  // else of the dependent
};
inline constexpr std::array kVectorTemplates = {VectorTemplate{90, true}, VectorTemplate{91, false}};

// The parts of speech of an arc; the root's is kRootTag.
struct ArcTags {
    Key head, dependent;
};
inline constexpr Key kRootTag = key_of("<root>");

inline Key block_key(const VectorTemplate& pattern, Side side, ArcTags tags) {
    const Key key = extended(pattern.number * 0xD6E8FEB86659FD93u, static_cast<Key>(side) + 1);
    return extended(extended(key, tags.head), tags.dependent);
}

struct VectorLayout {
    VectorLayout() = default;
    // Throws std::invalid_argument unless they fit together.
    VectorLayout(std::int64_t size, std::vector<Key> keys, std::vector<std::int64_t> ptr,
                 std::vector<std::int32_t> labels, std::int32_t n_labels);
    // The blocks of the arcs that are known, if they are seen at least `min_count` times.
    static VectorLayout learn(const Treebank& treebank, const KnownTrees& trees, std::int32_t n_labels,
                              std::int64_t min_count);

    std::int64_t n_blocks() const { return static_cast<std::int64_t>(keys.size()); }
    std::int64_t n_weights() const { return size * static_cast<std::int64_t>(labels.size()); }
    // The number of a block by its key, −1: it has no weights.
    std::int32_t find(Key key) const;
    std::int64_t n_rows(std::int64_t block) const { return ptr[block + 1] - ptr[block]; }

    std::int64_t size = 0;             // K; 0: there are no vectors
    std::vector<Key> keys;             // ascending
    std::vector<std::int64_t> ptr{0};  // [blocks + 1] the rows of K weights of each block
    std::vector<std::int32_t> labels;  // of each row, ascending in a block; n_labels: of all labels alike
};

}  // namespace crfkit
