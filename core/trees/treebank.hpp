// Sentences for a parser: the texts of each word as keys, and what is known about their trees.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/key_hash.hpp"
#include "trees/candidate_arcs.hpp"

namespace crfkit {

// The columns of one word.
struct WordTexts {
    std::string_view form, lemma, upos, xpos, feats;
};

// One word: keys of its texts.
struct Word {
    Key form, lemma, upos, xpos, feats, suffix;
    std::int64_t feats_begin, feats_end;  // its features among Treebank::morphology
};

// Name=Value of a word's morphology.
struct Morph {
    Key name, whole;
};

// Where a word stands in a tree of word clusters: its path, and two beginnings of it, which are coarser
// classes.
struct WordClass {
    Key whole, longer, shorter;
};

class Treebank {
  public:
    void begin_sentence() { sentence_ptr.push_back(sentence_ptr.back()); }
    // A word of the sentence that was begun last.
    void add(const WordTexts& texts);

    // The paths of all words, in their order; a word whose path is empty has none. Paths that are not made of
    // 0 and 1 are flat classes. Throws std::invalid_argument unless there are as many as words.
    void set_paths(std::span<const std::string> paths);

    // The vectors of all words, in their order: word t has row ids[t] of rows [·, size], or none where it is
    // −1. Throws std::invalid_argument unless there are as many as words.
    void set_vectors(std::int64_t size, std::span<const double> rows, std::span<const std::int32_t> ids);
    // The vector [vector_size] of word t, null where it has none.
    const double* vector(std::int64_t t) const {
        return vector_ids[t] < 0 ? nullptr : vectors.data() + vector_ids[t] * vector_size;
    }

    std::int64_t n_sentences() const { return static_cast<std::int64_t>(sentence_ptr.size()) - 1; }
    std::int64_t n_words() const { return sentence_ptr.back(); }
    std::int64_t length(std::int64_t n) const { return sentence_ptr[n + 1] - sentence_ptr[n]; }

    std::vector<std::int64_t> sentence_ptr{0};  // [N + 1]
    std::vector<Word> words;                    // [T]
    std::vector<Morph> morphology;
    std::vector<WordClass> classes;        // [T], or none
    std::int64_t vector_size = 0;          // 0: there are no vectors
    std::vector<double> vectors;           // [rows, vector_size]
    std::vector<std::int32_t> vector_ids;  // [T], or none
};

// What is known of the trees of a treebank: head (0: the root) and label of each word, −1 where unknown.
struct KnownTrees {
    std::vector<std::int32_t> heads, labels;  // [T]
    std::vector<double> weights;              // [N] how often each sentence counts

    // throws std::invalid_argument where they do not fit the treebank.
    void check(const Treebank& treebank, std::int32_t n_labels) const;
    // −inf in scores [n + 1, n + 1, R] of a sentence, whose words begin at `first`, for arcs and labels that
    // do not agree.
    void forbid(std::int64_t first, std::int64_t n_words, std::int64_t n_labels, double* scores) const;
    // The same in scores [arcs, R].
    void forbid(std::int64_t first, std::span<const Arc> arcs, std::int64_t n_labels, double* scores) const;
};

}  // namespace crfkit
