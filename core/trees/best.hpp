// The highest-scoring spanning tree: Chu and Liu (1965), Edmonds (1967), in Tarjan's form (1977) for dense
// graphs, O(n²), without recursion.
//
// Every word, then every cycle of words, takes the best arc that leads into it; words that form a cycle
// become one, and arcs into the cycle score what they are better than the arc of the cycle they replace. When
// each has an arc and no cycle is left, the cycles are opened again, each at the word where its arc enters.
//
// One root exactly: scores are compared as pairs, (−number of root arcs, score), so that trees with the
// fewest root arcs win, and among these the best. As no cycle has a root arc, this means: take an arc from
// the root only where no other is left. No bonus or penalty of some size is added to any score.
#pragma once

#include <cstdint>
#include <vector>

#include "base/exact_sum.hpp"
#include "trees/graph.hpp"

namespace crfkit {

// A score that is never rounded, or that of an arc that is absent, which is below all others.
struct ExactScore {
    ExactScore() = default;
    explicit ExactScore(double score) : exists(score > kNever) {
        if (exists) sum = ExactSum(score);
    }
    bool operator==(const ExactScore&) const = default;
    bool operator>(const ExactScore& other) const { return exists && (!other.exists || sum > other.sum); }
    friend ExactScore operator-(ExactScore a, const ExactScore& b) {
        if (a.exists) a.sum -= b.sum;
        return a;
    }
    ExactScore& operator+=(const ExactScore& other) {
        sum += other.sum;
        return *this;
    }
    bool exists = false;
    ExactSum sum;
};

// Scores are doubles, or ExactScores where doubles are far apart.
template <class Score>
class BestTree {
  public:
    // Finds the best tree with arc scores [n + 1, n + 1]; −inf where there is no arc, the diagonal and column
    // 0 included. Throws NoTree. With `keep_rows` there may be a question for the next best.
    void find(const Score* arcs, std::int64_t n_words, bool one_root, bool keep_rows);

    const std::vector<std::int32_t>& heads() const { return heads_; }  // [n + 1], that of the root is 0

    // The arc of the best tree that the second best does without, after Camerini, Fratta and Maffioli (1980):
    // for each word or cycle whose arc is in the tree, the best other arc into it from outside of what hangs
    // below it. `label_gain[m]` is what the second-best label of the arc into m has more than the best, at
    // most 0 (absent: there is none). Returns the word that the arc leads into; 0: there is no other tree.
    std::int64_t next(const std::vector<Score>& label_gain) const;

  private:
    // A word, or a cycle of nodes that became one.
    struct Node {
        std::int32_t parent = -1;  // the cycle that it is in
        std::int32_t row = 0;      // of scores of the arcs into it
        std::int32_t head = 0;     // of its arc: a word, or 0
        std::int32_t word = 0;     // where its arc enters
        Score score{};             // of its arc, less the arcs that it replaces
        Score other_word{};        // the best arc from the same head that enters elsewhere
        bool in_tree = false;      // its arc is in the tree
        std::vector<std::int32_t> words;
    };

    void begin(const Score* arcs, std::int64_t n_words, bool keep_rows);
    void grow_path(std::int32_t start, bool one_root);
    bool choose(std::int32_t node, bool one_root);
    void enter(Node& node);
    std::int32_t contract(std::size_t first);
    void open_cycles();
    Score* row(std::int32_t node) { return rows_.data() + nodes_[node].row * side_; }
    const Score* row(std::int32_t node) const { return rows_.data() + nodes_[node].row * side_; }

    std::int64_t n_ = 0, side_ = 0;
    const Score* arcs_ = nullptr;
    bool one_root_ = false, keep_rows_ = false;
    std::vector<Node> nodes_;
    std::vector<Score> rows_;      // [·, n + 1] (node, head), −inf from within
    std::vector<Score> replaced_;  // [n + 1] of each word: scores of the arcs replaced where it is entered
    std::vector<std::int32_t> node_of_;  // [n + 1] the outermost node of each word
    std::vector<char> state_;            // of each node: new, on the path, reached
    std::vector<std::int32_t> path_, heads_;
    std::int32_t root_word_ = 0;  // a word of the node that hangs on the root
};

extern template class BestTree<double>;
extern template class BestTree<ExactScore>;

}  // namespace crfkit
