// The projective trees of one sentence over given arcs, as the hyperpaths of a hypergraph whose edges know
// the parts of second-order models (Koo and Collins 2010, model 1):
//
// Spans, where a is an arc into h (so that every span of h knows its grandparent) and b, c are arcs out of h:
//   C(a, e)    h with all its dependents on one side, whose words end at e        = Σ_b I(a, b) · C(b, e)
//   I(a, b)    h with its dependents on one side up to that of b, which is open at its far side
//              = C(b, h ± 1) + Σ_c I(a, c) · S(c, b)
//   S(c, b)    what stands between the dependents of c and b                      = Σ_r C(c, r) · C(b, r ± 1)
// The goal is C(the root, n). All spans are made from those that exist, so that few arcs cost little in long
// sentences too.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hyperpaths/array_hypergraph.hpp"
#include "trees/tree_parts.hpp"

namespace crfkit {

class PartGraph : public TreeParts {
  public:
    // `arcs` ascend. With `n_labels`, trees have labels: hyperpaths choose one of them for each arc.
    void build(std::int64_t n_words, std::span<const Arc> arcs, bool one_root, std::int64_t n_labels = 0);

    // The scores of all edges from those of the parts, [n_parts()]; with labels, `labels` [n_arcs(),
    // n_labels] are added.
    void set_scores(const double* parts, const double* labels = nullptr);
    const ArrayHypergraph& graph() const { return graph_; }
    // Calls function(part) for the parts of an edge.
    template <class Function>
    void each_part(std::int64_t edge, const Function& function) const {
        for (const std::int32_t part : edge_parts_[edge])
            if (part >= 0) function(static_cast<std::int64_t>(part));
    }
    // arc · n_labels + label of an edge that chooses a label, or −1.
    std::int64_t label_of(std::int64_t edge) const {
        return edge_parts_[edge][0] < -1 ? -2 - edge_parts_[edge][0] : -1;
    }

  private:
    // Up to three parts, −1: none; or −2 − (arc · n_labels + label), −1, −1.
    using EdgeParts = std::array<std::int32_t, 3>;
    struct End {
        std::int32_t at, node;
    };
    struct Completion {  // C(b, at) that the spans of the head of b take up
        std::int32_t head, side, at, arc, node;
        bool same_span(const Completion& other) const {
            return head == other.head && side == other.side && at == other.at;
        }
    };

    void begin(std::int64_t n_words, std::span<const Arc> arcs);
    void add_leaves();
    void add_incomplete(std::int32_t b, bool one_root);
    void add_complete(std::vector<Completion>& here);
    void add_end(std::int32_t arc, Side side, End end);
    std::int32_t label_node(std::int32_t arc);
    std::int32_t add_between(std::int32_t c, std::int32_t b);
    std::int32_t add_siblings(std::int32_t head, Side side, std::int32_t s, std::int32_t m) {
        return add_part({SecondOrderPart::Kind::siblings, side, head, s, m});
    }
    std::int32_t add_node() { return static_cast<std::int32_t>(graph_.add_node()); }
    void add_edge(std::int32_t left, std::int32_t right, EdgeParts parts) {
        graph_.add_edge(left, right, 0.0);
        edge_parts_.push_back(parts);
    }
    Side side(std::int32_t arc) const { return side_of(arcs_[arc].head, arcs_[arc].dependent); }
    std::int32_t width(std::int32_t arc) const;
    // The arcs into a word; that into the root is arc n_arcs().
    std::int64_t n_into(std::int32_t word) const { return word == 0 ? 1 : in_ptr_[word + 1] - in_ptr_[word]; }
    std::int32_t first_into(std::int32_t word) const {
        return word == 0 ? static_cast<std::int32_t>(arcs_.size()) : static_cast<std::int32_t>(in_ptr_[word]);
    }

    std::int64_t n_labels_ = 0;
    ArrayHypergraph graph_;
    std::vector<EdgeParts> edge_parts_;  // [edges]

    std::vector<std::int64_t> in_ptr_;                  // [n + 2] arcs into each word
    std::vector<std::vector<std::int32_t>> out_[2];     // by head and side: arcs, the nearest first
    std::vector<std::vector<std::int32_t>> by_width_;   // [n + 1] arcs
    std::vector<std::vector<Completion>> completions_;  // [n + 1] by the width of the span
    std::vector<std::vector<End>> ends_[2];             // by side and arc: C(arc, ·), the nearest first
    std::vector<std::int64_t> inc_ptr_;                 // [arcs + 1]
    std::vector<std::int32_t> inc_;    // node of I(a, b): [inc_ptr_[b] + number of a among n_into]
    std::vector<std::int32_t> stops_;  // [arcs] sibling part after the last dependent
    std::vector<std::int32_t> marks_;  // [n + 2] nodes by where a span ends
};

}  // namespace crfkit
