// The arcs that the trees of a second-order model are made of: those that a first-order model finds likely.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace crfkit {

struct Arc {
    std::int32_t head, dependent;  // head 0 is the root

    bool operator==(const Arc&) const = default;
    bool operator<(const Arc& other) const {
        return dependent != other.dependent ? dependent < other.dependent : head < other.head;
    }
};

// Of each sentence of a treebank, ascending by dependent and head.
struct CandidateArcs {
    std::vector<std::int64_t> sentence_ptr{0};  // [N + 1]
    std::vector<Arc> arcs;

    std::span<const Arc> of(std::int64_t sentence) const {
        return {arcs.data() + sentence_ptr[sentence],
                static_cast<std::size_t>(sentence_ptr[sentence + 1] - sentence_ptr[sentence])};
    }
};

// The number of an arc among those of a sentence; −1 where it is none of them.
inline std::int64_t find_arc(std::span<const Arc> arcs, Arc arc) {
    const auto found = std::lower_bound(arcs.begin(), arcs.end(), arc);
    return found != arcs.end() && *found == arc ? found - arcs.begin() : -1;
}

// Which arcs remain: at most `most` for each word, and only those whose probability is at least `threshold`
// times that of the word's likeliest.
struct Pruning {
    double threshold;
    std::int64_t most;
};

}  // namespace crfkit
