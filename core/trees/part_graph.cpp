#include "trees/part_graph.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace crfkit {
namespace {

int place_of(Side side) { return side == Side::right; }
std::int32_t step_of(Side side) { return side == Side::right ? 1 : -1; }
Side opposite(Side side) { return side == Side::right ? Side::left : Side::right; }

template <class Lists>
void clear_lists(Lists& lists, std::size_t size) {
    if (lists.size() < size) lists.resize(size);
    for (std::size_t i = 0; i < size; ++i) lists[i].clear();
}

}  // namespace

std::int32_t PartGraph::width(std::int32_t arc) const {
    return std::abs(arcs_[arc].head - arcs_[arc].dependent);
}

void PartGraph::build(std::int64_t n_words, std::span<const Arc> arcs, bool one_root, std::int64_t n_labels) {
    n_labels_ = n_labels;
    begin(n_words, arcs);
    if (n_ == 0) {
        add_edge(kNoTail, kNoTail, {-1, -1, -1});
        add_node();
        return;
    }
    add_leaves();
    for (std::int64_t width = 1; width <= n_; ++width) {
        for (const std::int32_t b : by_width_[width]) add_incomplete(b, one_root);
        add_complete(completions_[width]);
    }
    // The goal is the last node, whatever exists.
    const auto& goals = ends_[place_of(Side::right)][arcs_.size()];
    for (const End& end : goals)
        if (end.at == n_) add_edge(end.node, kNoTail, {-1, -1, -1});
    add_node();
}

void PartGraph::begin(std::int64_t n_words, std::span<const Arc> arcs) {
    n_ = n_words;
    arcs_.assign(arcs.begin(), arcs.end());
    second_order_.clear();
    graph_.clear();
    edge_parts_.clear();
    const auto n = static_cast<std::size_t>(n_), A = arcs_.size();
    in_ptr_.assign(n + 2, 0);
    clear_lists(by_width_, n + 1);
    clear_lists(completions_, n + 1);
    for (const int side : {0, 1}) {
        clear_lists(out_[side], n + 1);
        clear_lists(ends_[side], A + 1);
    }
    for (const Arc& arc : arcs_) ++in_ptr_[arc.dependent + 1];
    for (std::size_t i = 1; i < in_ptr_.size(); ++i) in_ptr_[i] += in_ptr_[i - 1];
    inc_ptr_.assign(1, 0);
    for (std::size_t b = 0; b < A; ++b) {
        const auto arc = static_cast<std::int32_t>(b);
        by_width_[width(arc)].push_back(arc);
        out_[place_of(side(arc))][arcs_[b].head].push_back(arc);
        inc_ptr_.push_back(inc_ptr_.back() + n_into(arcs_[b].head));
    }
    for (std::size_t i = 0; i <= n; ++i) std::reverse(out_[0][i].begin(), out_[0][i].end());
    inc_.assign(static_cast<std::size_t>(inc_ptr_.back()), -1);
    stops_.assign(A, -1);
    marks_.assign(n + 2, -1);
}

// Words without dependents on one side: spans of themselves.
void PartGraph::add_leaves() {
    for (std::int32_t word = 0; word <= n_; ++word)
        for (const Side side : {Side::left, Side::right}) {
            if (word == 0) continue;  // the root has dependents
            add_edge(kNoTail, kNoTail, {add_siblings(word, side, kNoWord, kNoWord), -1, -1});
            const std::int32_t leaf = add_node();
            for (std::int64_t k = 0; k < n_into(word); ++k)
                add_end(first_into(word) + static_cast<std::int32_t>(k), side, {word, leaf});
        }
}

// C(arc, end) exists: on its own, and for the spans of the arc's head if it extends them.
void PartGraph::add_end(std::int32_t arc, Side span_side, End end) {
    ends_[place_of(span_side)][arc].push_back(end);
    if (arc == static_cast<std::int32_t>(arcs_.size()) || side(arc) != span_side) return;
    const Arc& b = arcs_[arc];
    completions_[std::abs(end.at - b.head)].push_back({b.head, place_of(span_side), end.at, arc, end.node});
}

// The labels of an arc, one edge each.
std::int32_t PartGraph::label_node(std::int32_t arc) {
    for (std::int64_t r = 0; r < n_labels_; ++r)
        add_edge(kNoTail, kNoTail, {static_cast<std::int32_t>(-2 - (arc * n_labels_ + r)), -1, -1});
    return add_node();
}

// S(c, b), or −1 where nothing fits between; marks_ has the spans of b towards its head.
std::int32_t PartGraph::add_between(std::int32_t c, std::int32_t b) {
    const Side out = side(b);
    bool exists = false;
    for (const End& end : ends_[place_of(out)][c]) {
        const std::int32_t next = end.at + step_of(out);
        if ((arcs_[b].dependent - next) * step_of(out) < 0) break;
        if (marks_[next] < 0) continue;
        add_edge(end.node, marks_[next], {-1, -1, -1});
        exists = true;
    }
    return exists ? add_node() : -1;
}

// I(a, b) for all arcs a into the head of b.
void PartGraph::add_incomplete(std::int32_t b, bool one_root) {
    const Arc arc = arcs_[b];
    const Side out = side(b);
    struct Between {
        std::int32_t arc, node, part;
    };
    std::vector<Between> betweens;
    for (const End& end : ends_[place_of(opposite(out))][b]) marks_[end.at] = end.node;
    const std::int32_t nearest = marks_[arc.head + step_of(out)];
    const std::int32_t label = n_labels_ ? label_node(b) : static_cast<std::int32_t>(kNoTail);
    if (arc.head != 0 || !one_root)
        for (const std::int32_t c : out_[place_of(out)][arc.head]) {
            if (c == b) break;
            std::int32_t node = add_between(c, b);
            if (node < 0) continue;
            if (n_labels_) {
                add_edge(node, label, {-1, -1, -1});
                node = add_node();
            }
            betweens.push_back({c, node, add_siblings(arc.head, out, arcs_[c].dependent, arc.dependent)});
        }
    for (const End& end : ends_[place_of(opposite(out))][b]) marks_[end.at] = -1;
    if (nearest < 0 && betweens.empty()) return;
    const std::int32_t first = nearest < 0 ? -1 : add_siblings(arc.head, out, kNoWord, arc.dependent);
    for (std::int64_t k = 0; k < n_into(arc.head); ++k) {
        if (nearest < 0 && std::none_of(
                               betweens.begin(), betweens.end(),
                               [&](const Between& between) { return inc_[inc_ptr_[between.arc] + k] >= 0; }))
            continue;
        const std::int32_t part = arc.head == 0
                                      ? -1
                                      : add_part({SecondOrderPart::Kind::grandparent, out, arc.head,
                                                  arcs_[in_ptr_[arc.head] + k].head, arc.dependent});
        if (nearest >= 0) add_edge(nearest, label, {b, first, part});
        for (const Between& between : betweens)
            if (const std::int32_t before = inc_[inc_ptr_[between.arc] + k]; before >= 0)
                add_edge(before, between.node, {b, between.part, part});
        inc_[inc_ptr_[b] + k] = add_node();
    }
}

// C(a, e) of one width, for all arcs a.
void PartGraph::add_complete(std::vector<Completion>& here) {
    std::stable_sort(here.begin(), here.end(), [](const Completion& x, const Completion& y) {
        return std::tie(x.head, x.side, x.at, x.arc) < std::tie(y.head, y.side, y.at, y.arc);
    });
    for (std::size_t i = 0, end; i < here.size(); i = end) {
        for (end = i + 1; end < here.size() && here[i].same_span(here[end]);) ++end;
        const std::int32_t head = here[i].head;
        const Side out = here[i].side ? Side::right : Side::left;
        for (std::int64_t k = 0; k < n_into(head); ++k) {
            const std::int64_t n_edges = graph_.n_edges();
            for (std::size_t j = i; j < end; ++j) {
                const std::int32_t b = here[j].arc, open = inc_[inc_ptr_[b] + k];
                if (open < 0) continue;
                if (stops_[b] < 0) stops_[b] = add_siblings(head, out, arcs_[b].dependent, kNoWord);
                add_edge(open, here[j].node, {stops_[b], -1, -1});
            }
            if (graph_.n_edges() == n_edges) continue;
            add_end(first_into(head) + static_cast<std::int32_t>(k), out, {here[i].at, add_node()});
        }
    }
}

void PartGraph::set_scores(const double* parts, const double* labels) {
    const std::span<double> scores = graph_.scores();
    for (std::size_t edge = 0; edge < edge_parts_.size(); ++edge) {
        double score = 0;
        if (const std::int64_t label = label_of(static_cast<std::int64_t>(edge)); label >= 0)
            score = labels[label];
        else
            each_part(static_cast<std::int64_t>(edge), [&](std::int64_t part) { score += parts[part]; });
        scores[edge] = score;
    }
    graph_.weigh();
}

}  // namespace crfkit
