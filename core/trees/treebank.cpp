#include "trees/treebank.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/lists.hpp"
#include "trees/graph.hpp"

namespace crfkit {
namespace {

constexpr std::size_t kSuffixLetters = 3;
constexpr std::size_t kLongerPath = 6, kShorterPath = 4;  // of word clusters (Koo and others 2008)
constexpr std::size_t kMostMorphs = 64;                   // of a word; arcs look at all pairs of them

// The last letters of a text in UTF-8.
std::string_view suffix_of(std::string_view text) {
    std::size_t at = text.size();
    for (std::size_t letters = 0; at > 0 && letters < kSuffixLetters; ++letters) {
        --at;
        while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    }
    return text.substr(at);
}

}  // namespace

void Treebank::add(const WordTexts& texts) {
    Word word{key_of(texts.form),
              key_of(texts.lemma),
              key_of(texts.upos),
              key_of(texts.xpos == "_" ? texts.upos : texts.xpos),
              key_of(texts.feats),
              key_of(suffix_of(texts.form)),
              static_cast<std::int64_t>(morphology.size()),
              0};
    const std::size_t most = morphology.size() + kMostMorphs;
    for (std::string_view rest = texts.feats; rest != "_" && !rest.empty() && morphology.size() < most;) {
        const std::string_view pair = rest.substr(0, rest.find('|'));
        morphology.push_back({key_of(pair.substr(0, pair.find('='))), key_of(pair)});
        rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    }
    word.feats_end = static_cast<std::int64_t>(morphology.size());
    words.push_back(word);
    ++sentence_ptr.back();
}

void Treebank::set_paths(std::span<const std::string> paths) {
    if (paths.size() != words.size())
        throw std::invalid_argument("there must be a path for each of the " + std::to_string(words.size()) +
                                    " words");
    classes.clear();
    for (const std::string_view path : paths) {
        if (path.empty()) {
            classes.push_back({key_of("<none>"), key_of("<none>"), key_of("<none>")});
            continue;
        }
        const bool is_flat = path.find_first_not_of("01") != path.npos;
        const auto first = [&](std::size_t n) { return key_of(is_flat ? path : path.substr(0, n)); };
        classes.push_back({key_of(path), first(kLongerPath), first(kShorterPath)});
    }
}

void Treebank::set_vectors(std::int64_t size, std::span<const double> rows,
                           std::span<const std::int32_t> ids) {
    if (ids.size() != words.size())
        throw std::invalid_argument("there must be the row of a vector for each of the " +
                                    std::to_string(words.size()) + " words");
    if (size < 1) throw std::invalid_argument("word vectors must have at least one number");
    check_range(ids, -1, static_cast<std::int64_t>(rows.size()) / size, "ids");
    vector_size = size;
    vectors = copy(rows);
    vector_ids = copy(ids);
}

void KnownTrees::check(const Treebank& treebank, std::int32_t n_labels) const {
    const auto n_words = static_cast<std::size_t>(treebank.n_words());
    if (heads.size() != n_words || labels.size() != n_words)
        throw std::invalid_argument("there must be a head and a label for each of the " +
                                    std::to_string(n_words) + " words");
    if (static_cast<std::int64_t>(weights.size()) != treebank.n_sentences())
        throw std::invalid_argument("there must be a weight for each sentence");
    for (std::int64_t n = 0; n < treebank.n_sentences(); ++n)
        for (std::int64_t t = treebank.sentence_ptr[n]; t < treebank.sentence_ptr[n + 1]; ++t) {
            if (heads[t] < -1 || heads[t] > treebank.length(n) ||
                heads[t] == t - treebank.sentence_ptr[n] + 1)
                throw std::invalid_argument("head " + std::to_string(heads[t]) + " is out of range");
            if (labels[t] < -1 || labels[t] >= n_labels)
                throw std::invalid_argument("label " + std::to_string(labels[t]) + " is out of range");
        }
}

void KnownTrees::forbid(std::int64_t first, std::int64_t n_words, std::int64_t R, double* scores) const {
    for (std::int64_t h = 0; h <= n_words; ++h)
        for (std::int64_t m = 1; m <= n_words; ++m) {
            const std::int32_t head = heads[first + m - 1], label = labels[first + m - 1];
            double* row = scores + (h * (n_words + 1) + m) * R;
            for (std::int64_t r = 0; r < R; ++r)
                if ((head >= 0 && head != h) || (label >= 0 && label != r)) row[r] = kNever;
        }
}

void KnownTrees::forbid(std::int64_t first, std::span<const Arc> arcs, std::int64_t R, double* scores) const {
    for (const Arc& arc : arcs) {
        const std::int32_t head = heads[first + arc.dependent - 1], label = labels[first + arc.dependent - 1];
        for (std::int64_t r = 0; r < R; ++r, ++scores)
            if ((head >= 0 && head != arc.head) || (label >= 0 && label != r)) *scores = kNever;
    }
}

}  // namespace crfkit
