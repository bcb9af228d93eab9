// Features of arcs, after the first-order graph parsers (McDonald and others 2005; Koo and Collins 2010;
// Martins and others 2013): what head and dependent are, their neighbours, what stands between, direction and
// distance.
//
// Two kinds: those of the arc itself, and those that say which label it has. Many of the latter look at one
// of the two words only, so that a sentence of n words has 4 n lists of them and not n².
#pragma once

#include <cstdint>
#include <vector>

#include "trees/key_list.hpp"
#include "trees/treebank.hpp"

namespace crfkit {

// On which side of its head a dependent is.
enum class Side { left, right };
inline Side side_of(std::int64_t head, std::int64_t dependent) {
    return dependent < head ? Side::left : Side::right;
}

class ArcFeatures {
  public:
    // Goes to a sentence; the questions below are about it. Words are 1 … n, the root is 0.
    void load(const Treebank& treebank, std::int64_t sentence);
    std::int64_t n_words() const { return n_; }

    // Each adds keys to `out`, and the number of the template of each key to `numbers`, where that is not
    // null.
    void arc(std::int64_t head, std::int64_t dependent, KeyList& out,
             std::vector<Key>* numbers = nullptr) const;
    // The same of few templates, for a model that prunes arcs.
    void coarse_arc(std::int64_t head, std::int64_t dependent, KeyList& out) const;
    // Of labels: by the dependent alone, by the head alone, by both.
    void label_of_dependent(std::int64_t dependent, Side side, KeyList& out) const;
    void label_of_head(std::int64_t head, Side side, KeyList& out) const;
    void label_of_arc(std::int64_t head, std::int64_t dependent, KeyList& out) const;
    // Of two dependents on one side of a head that have none between them; −1: no sibling nearer to the head,
    // or no dependent further away (part_features.cpp).
    void siblings(std::int64_t head, Side side, std::int64_t sibling, std::int64_t dependent,
                  KeyList& out) const;
    void grandparent(std::int64_t grandparent, std::int64_t head, std::int64_t dependent, KeyList& out) const;

  private:
    struct Token : Word {
        Key marker;  // the preposition or conjunction that introduces it, as far as tags tell
        Key role;    // upos with what of the morphology tells most of syntax: case, form of verbs, type of
                     // pronouns
        std::int8_t tag = 0, fine = 0;  // number of its upos, xpos among those of the sentence
        WordClass cluster{};            // where the treebank has word clusters
    };
    class Writer;

    static const Token& no_token();
    const Token& at(std::int64_t i) const { return tokens_[i + kMargin]; }
    std::int64_t binned_distance(std::int64_t head, std::int64_t dependent) const;
    void number_tags();
    void find_markers();
    void find_roles();
    void count_between();
    void single_words(const Token& h, const Token& m, Writer& write) const;
    void word_pairs(const Token& h, const Token& m, Writer& write) const;
    void neighbours(std::int64_t head, std::int64_t dependent, Writer& write) const;
    void between(std::int64_t head, std::int64_t dependent, Writer& write) const;
    void morphology(const Token& h, const Token& m, Writer& write) const;
    void clusters(const Token& h, const Token& m, Writer& write) const;

    static constexpr std::int64_t kMargin = 2;
    static constexpr int kMostTags = 64;

    std::int64_t n_ = 0;
    std::vector<Token> tokens_;  // [n + 1 + 2 · kMargin]
    const Morph* morphology_ = nullptr;
    bool has_clusters_ = false;
    std::vector<Key> tags_, fine_tags_;
    std::vector<std::uint64_t> tags_between_, fine_between_;  // [n + 1, n + 1] sets of tags i < · < j
    std::vector<std::int32_t> verbs_, stops_, joints_;        // [n + 2] how many before word i
};

}  // namespace crfkit
