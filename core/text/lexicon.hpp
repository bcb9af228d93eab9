// Lists of entries of one or several tokens, and where they occur in a sequence.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/string_index.hpp"
#include "text/vocabulary.hpp"

namespace crfkit {

// The state of a position: outside of all entries, or first, inner, last or only token of one.
enum class MatchState : std::uint8_t { none, begin, inside, end, single };

// Entries as a trie over tokens, in arrays. Node 0 is the root; set 0 is the empty one.
struct LexiconArrays {
    std::vector<std::uint32_t> first;      // [tokens] node of the entries that begin with a token; 0: none
    std::vector<std::uint32_t> edges;      // [3 · power of two]: node, token, the node behind; 0: free
    std::vector<std::uint32_t> node_sets;  // [nodes] the set of lists that have the entry which ends there
    std::vector<std::uint32_t> set_ptr, set_lists;  // the lists of each set, rising
};

// Takes entries one by one.
class LexiconBuilder {
  public:
    // Adds an entry of at least one token to a list.
    void add(std::span<const std::string_view> tokens, std::uint32_t list);

    std::int64_t n_entries() const { return n_entries_; }  // distinct ones
    const Vocabulary& tokens() const { return tokens_; }
    LexiconArrays finish() const;

  private:
    struct Edge {
        std::uint32_t node, token, next;  // next = 0: free
    };
    std::uint32_t follow(std::uint32_t node, std::uint32_t token);
    void grow();

    Vocabulary tokens_;
    std::vector<std::uint32_t> first_;
    std::vector<Edge> edges_ = std::vector<Edge>(16);
    std::size_t n_edges_ = 0;
    std::vector<std::uint32_t> node_sets_{0};
    std::vector<std::vector<std::uint32_t>> sets_{{}};
    std::map<std::vector<std::uint32_t>, std::uint32_t> set_ids_{{{}, 0}};
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> widened_;  // (set, list) → set
    std::int64_t n_entries_ = 0;
};

// A view of the arrays of a lexicon. Whatever they hold, a lookup ends and reads nothing outside of them.
class Lexicon {
  public:
    // Throws std::invalid_argument where the sizes of the arrays do not fit together.
    Lexicon(StringIndex tokens, std::span<const std::uint32_t> first, std::span<const std::uint32_t> edges,
            std::span<const std::uint32_t> node_sets, std::span<const std::uint32_t> set_ptr,
            std::span<const std::uint32_t> set_lists, std::vector<std::string> lists);

    const std::vector<std::string>& lists() const { return lists_; }
    // The lists that have exactly this entry.
    std::vector<std::uint32_t> find(std::span<const std::string_view> tokens) const;

    // The state of each position for each list, [lists, T]. List by list, the sequence is read from left to
    // right: where an entry of the list begins, the longest one is taken, and reading goes on behind it.
    std::vector<MatchState> match(std::span<const std::string_view> tokens) const;

    // What a macro reads at a position: the letter of the state (B, I, E, S) for one list; for all of them
    // the letters with the names of their lists, B-city+S-person. A lexicon of one list needs no names.
    // Empty: nothing.
    std::string describe(std::span<const MatchState> states, std::size_t position, std::size_t n_positions,
                         std::int32_t list) const;

  private:
    std::uint32_t follow(std::uint32_t node, std::uint32_t token) const;
    std::span<const std::uint32_t> lists_of(std::uint32_t node) const;

    StringIndex tokens_;
    std::span<const std::uint32_t> first_, edges_, node_sets_, set_ptr_, set_lists_;
    std::vector<std::string> lists_;
};

}  // namespace crfkit
