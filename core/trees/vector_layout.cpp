#include "trees/vector_layout.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/interruption.hpp"
#include "base/lists.hpp"
#include "trees/key_table.hpp"

namespace crfkit {
namespace {

struct Seen {
    Key key;
    std::int32_t label;
    bool operator<(const Seen& other) const {
        return key != other.key ? key < other.key : label < other.label;
    }
};

}  // namespace

VectorLayout::VectorLayout(std::int64_t vector_size, std::vector<Key> block_keys,
                           std::vector<std::int64_t> block_ptr, std::vector<std::int32_t> block_labels,
                           std::int32_t n_labels)
    : size(vector_size),
      keys(std::move(block_keys)),
      ptr(std::move(block_ptr)),
      labels(std::move(block_labels)) {
    if (size < 0 || (size == 0 && !keys.empty()))
        throw std::invalid_argument("blocks of word vectors need at least one number");
    check_keys(keys);
    check_label_lists(ptr, labels, n_blocks(), std::int64_t(n_labels) + 1, "block");
}

VectorLayout VectorLayout::learn(const Treebank& treebank, const KnownTrees& trees, std::int32_t n_labels,
                                 std::int64_t min_count) {
    if (treebank.vector_size == 0) return {};
    std::vector<Seen> seen;
    for (std::int64_t n = 0; n < treebank.n_sentences(); ++n) {
        check_interruption();
        const std::int64_t first = treebank.sentence_ptr[n] - 1;  // of the root
        for (std::int64_t m = 1; m <= treebank.length(n); ++m) {
            const std::int32_t head = trees.heads[first + m], label = trees.labels[first + m];
            if (head < 0) continue;
            const ArcTags tags{head ? treebank.words[first + head].upos : kRootTag,
                               treebank.words[first + m].upos};
            for (const VectorTemplate& pattern : kVectorTemplates) {
                const std::int64_t word = pattern.of_head ? head : m;
                if (word == 0 || !treebank.vector(first + word)) continue;
                const Key key = block_key(pattern, side_of(head, m), tags);
                seen.push_back({key, n_labels});
                if (label >= 0) seen.push_back({key, label});
            }
        }
    }
    std::sort(seen.begin(), seen.end());
    VectorLayout found;
    found.size = treebank.vector_size;
    for (std::size_t i = 0, end; i < seen.size(); i = end) {
        for (end = i + 1; end < seen.size() && seen[end].key == seen[i].key;) ++end;
        // Each arc has an entry for all labels alike, which come last.
        const auto of_arcs = std::count_if(seen.begin() + static_cast<std::ptrdiff_t>(i),
                                           seen.begin() + static_cast<std::ptrdiff_t>(end),
                                           [&](const Seen& one) { return one.label == n_labels; });
        if (of_arcs < min_count) continue;
        found.keys.push_back(seen[i].key);
        for (std::size_t k = i; k < end; ++k)
            if (k == i || seen[k].label != seen[k - 1].label) found.labels.push_back(seen[k].label);
        found.ptr.push_back(static_cast<std::int64_t>(found.labels.size()));
    }
    return found;
}

std::int32_t VectorLayout::find(Key key) const {
    const auto found = std::lower_bound(keys.begin(), keys.end(), key);
    return found != keys.end() && *found == key ? static_cast<std::int32_t>(found - keys.begin()) : -1;
}

}  // namespace crfkit
