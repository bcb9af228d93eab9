#include "text/lexicon.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "base/interruption.hpp"
#include "base/key_hash.hpp"

namespace crfkit {

namespace {

constexpr std::uint32_t root = 0;
constexpr std::uint32_t no_node = 0;  // no edge leads back to the root
constexpr char letters[] = " BIES";   // of the states

std::size_t edge_hash(std::uint32_t node, std::uint32_t token) {
    const Key key = extended(node, (Key{token} << 32) | token);
    return key ^ (key >> 32);
}

}  // namespace

void LexiconBuilder::add(std::span<const std::string_view> tokens, std::uint32_t list) {
    if (tokens.empty()) throw std::invalid_argument("an entry has no tokens");
    std::uint32_t node = root;
    for (const std::string_view text : tokens) {
        const auto token = static_cast<std::uint32_t>(tokens_.add(text));
        if (token == first_.size()) first_.push_back(no_node);
        node = follow(node, token);
    }
    const std::uint32_t set = node_sets_[node];
    n_entries_ += set == 0;
    const auto [known, is_new] = widened_.try_emplace({set, list}, 0);
    if (is_new) {
        std::vector<std::uint32_t> wider = sets_[set];
        const auto at = std::lower_bound(wider.begin(), wider.end(), list);
        if (at == wider.end() || *at != list) wider.insert(at, list);
        const auto [place, added] = set_ids_.try_emplace(wider, static_cast<std::uint32_t>(sets_.size()));
        if (added) sets_.push_back(std::move(wider));
        known->second = place->second;
    }
    node_sets_[node] = known->second;
}

std::uint32_t LexiconBuilder::follow(std::uint32_t node, std::uint32_t token) {
    const auto make_node = [this] {
        if (node_sets_.size() > 0xFFFFFFF0u) throw std::invalid_argument("there are too many entries");
        node_sets_.push_back(0);
        return static_cast<std::uint32_t>(node_sets_.size() - 1);
    };
    if (node == root) return first_[token] == no_node ? first_[token] = make_node() : first_[token];
    if (2 * (n_edges_ + 1) > edges_.size()) grow();
    const std::size_t mask = edges_.size() - 1;
    std::size_t i = edge_hash(node, token) & mask;
    for (; edges_[i].next != no_node; i = (i + 1) & mask)
        if (edges_[i].node == node && edges_[i].token == token) return edges_[i].next;
    ++n_edges_;
    edges_[i] = {node, token, make_node()};
    return edges_[i].next;
}

void LexiconBuilder::grow() {
    std::vector<Edge> larger(2 * edges_.size());
    const std::size_t mask = larger.size() - 1;
    for (const Edge& edge : edges_) {
        if (edge.next == no_node) continue;
        std::size_t i = edge_hash(edge.node, edge.token) & mask;
        while (larger[i].next != no_node) i = (i + 1) & mask;
        larger[i] = edge;
    }
    edges_ = std::move(larger);
}

LexiconArrays LexiconBuilder::finish() const {
    LexiconArrays out{first_, {}, node_sets_, {0}, {}};
    out.edges.reserve(3 * edges_.size());
    for (const Edge& edge : edges_) out.edges.insert(out.edges.end(), {edge.node, edge.token, edge.next});
    for (const auto& set : sets_) {
        out.set_lists.insert(out.set_lists.end(), set.begin(), set.end());
        out.set_ptr.push_back(static_cast<std::uint32_t>(out.set_lists.size()));
    }
    return out;
}

Lexicon::Lexicon(StringIndex tokens, std::span<const std::uint32_t> first,
                 std::span<const std::uint32_t> edges, std::span<const std::uint32_t> node_sets,
                 std::span<const std::uint32_t> set_ptr, std::span<const std::uint32_t> set_lists,
                 std::vector<std::string> lists)
    : tokens_(tokens),
      first_(first),
      edges_(edges),
      node_sets_(node_sets),
      set_ptr_(set_ptr),
      set_lists_(set_lists),
      lists_(std::move(lists)) {
    if (first.size() != tokens.size() || edges.size() % 3 || !std::has_single_bit(edges.size() / 3) ||
        node_sets.empty() || set_ptr.empty())
        throw std::invalid_argument("the sizes of the arrays of the lexicon do not fit together");
}

std::uint32_t Lexicon::follow(std::uint32_t node, std::uint32_t token) const {
    if (token >= first_.size()) return no_node;
    const auto usable = [this](std::uint32_t next) { return next < node_sets_.size() ? next : no_node; };
    if (node == root) return usable(first_[token]);
    const std::size_t mask = edges_.size() / 3 - 1;
    std::size_t i = edge_hash(node, token) & mask;
    for (std::size_t probes = 0; probes <= mask; ++probes, i = (i + 1) & mask) {
        const std::uint32_t next = edges_[3 * i + 2];
        if (next == no_node) return no_node;
        if (edges_[3 * i] == node && edges_[3 * i + 1] == token) return usable(next);
    }
    return no_node;
}

std::span<const std::uint32_t> Lexicon::lists_of(std::uint32_t node) const {
    const std::uint32_t set = node_sets_[node];
    if (set == 0 || set + std::size_t{1} >= set_ptr_.size()) return {};
    const std::uint32_t begin = set_ptr_[set], end = set_ptr_[set + 1];
    if (begin > end || end > set_lists_.size()) return {};
    return set_lists_.subspan(begin, end - begin);
}

std::vector<std::uint32_t> Lexicon::find(std::span<const std::string_view> tokens) const {
    std::uint32_t node = root;
    for (const std::string_view token : tokens) {
        node = follow(node, tokens_.find(token));
        if (node == no_node) return {};
    }
    std::vector<std::uint32_t> found;
    for (const std::uint32_t list : lists_of(node))
        if (list < lists_.size()) found.push_back(list);
    return found;
}

std::vector<MatchState> Lexicon::match(std::span<const std::string_view> tokens) const {
    const std::size_t n = tokens.size();
    std::vector<std::uint32_t> ids(n);
    for (std::size_t i = 0; i < n; ++i) ids[i] = tokens_.find(tokens[i]);
    std::vector<MatchState> states(lists_.size() * n, MatchState::none);
    std::vector<std::size_t> next(lists_.size(), 0);                // where a list's next entry may begin
    std::vector<std::pair<std::size_t, std::uint32_t>> candidates;  // end of an entry, and its node
    Pace pace;
    for (std::size_t i = 0; i < n; ++i) {
        candidates.clear();
        std::uint32_t node = root;
        for (std::size_t end = i; end < n && (node = follow(node, ids[end])) != no_node; ++end) {
            pace.work(16);
            if (node_sets_[node] != 0) candidates.emplace_back(end + 1, node);
        }
        for (auto it = candidates.rbegin(); it != candidates.rend(); ++it) {  // longest first
            const std::size_t end = it->first;
            for (const std::uint32_t list : lists_of(it->second)) {
                if (list >= lists_.size() || next[list] > i) continue;
                MatchState* row = states.data() + list * n;
                std::fill(row + i, row + end, MatchState::inside);
                row[i] = MatchState::begin;
                row[end - 1] = end == i + 1 ? MatchState::single : MatchState::end;
                next[list] = end;
            }
        }
    }
    return states;
}

std::string Lexicon::describe(std::span<const MatchState> states, std::size_t position,
                              std::size_t n_positions, std::int32_t list) const {
    const auto letter = [&](std::size_t k) {
        return letters[static_cast<std::size_t>(states[k * n_positions + position])];
    };
    const bool named = list < 0 && lists_.size() > 1;
    std::string text;
    for (std::size_t k = 0; k < lists_.size(); ++k) {
        if ((list >= 0 && k != static_cast<std::size_t>(list)) || letter(k) == ' ') continue;
        if (!text.empty()) text += '+';
        text += letter(k);
        if (named) text.append("-").append(lists_[k]);
    }
    return text;
}

}  // namespace crfkit
