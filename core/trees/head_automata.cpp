#include "trees/head_automata.hpp"

#include <algorithm>

namespace crfkit {

void HeadAutomata::build(std::int64_t n_words, std::span<const Arc> arcs, bool one_root) {
    n_ = n_words;
    one_root_ = one_root;
    arcs_.assign(arcs.begin(), arcs.end());
    second_order_.clear();
    in_ptr_.assign(static_cast<std::size_t>(n_) + 2, 0);
    for (const Arc& arc : arcs_) ++in_ptr_[arc.dependent + 1];
    for (std::size_t i = 1; i < in_ptr_.size(); ++i) in_ptr_[i] += in_ptr_[i - 1];
    for (auto& lists : out_) lists.assign(static_cast<std::size_t>(n_) + 1, {});
    for (std::size_t b = 0; b < arcs_.size(); ++b)
        out_[side_of(arcs_[b].head, arcs_[b].dependent) == Side::right][arcs_[b].head].push_back(
            static_cast<std::int32_t>(b));
    for (auto& list : out_[0]) std::reverse(list.begin(), list.end());
    first_siblings_.assign(arcs_.size(), -1);
    stops_.assign(arcs_.size(), -1);
    leaves_.assign(2 * static_cast<std::size_t>(n_ + 1), -1);
    for (std::int32_t head = 0; head <= n_; ++head)
        for (const Side side : {Side::left, Side::right})
            if (head != 0 || side == Side::right) add_siblings(head, side);
    add_grandparents();
}

void HeadAutomata::add_siblings(std::int32_t head, Side side) {
    using Kind = SecondOrderPart::Kind;
    const auto& arcs = out(head, side);
    // The root always has a dependent.
    if (head != 0)
        leaves_[2 * head + (side == Side::right)] = add_part({Kind::siblings, side, head, kNoWord, kNoWord});
    for (std::size_t j = 0; j < arcs.size(); ++j) {
        const std::int32_t m = arcs_[arcs[j]].dependent;
        first_siblings_[arcs[j]] = add_part({Kind::siblings, side, head, kNoWord, m});
        for (std::size_t i = 0; i < j && may_repeat(head); ++i)
            add_part({Kind::siblings, side, head, arcs_[arcs[i]].dependent, m});
        stops_[arcs[j]] = add_part({Kind::siblings, side, head, m, kNoWord});
    }
}

void HeadAutomata::add_grandparents() {
    grandparent_ptr_.assign(1, 0);
    grandparents_.clear();
    for (const Arc& b : arcs_) {
        for (std::int32_t a = in_ptr_[b.head]; a < in_ptr_[b.head + 1]; ++a)
            grandparents_.push_back(
                arcs_[a].head == b.dependent
                    ? -1
                    : add_part({SecondOrderPart::Kind::grandparent, side_of(b.head, b.dependent), b.head,
                                arcs_[a].head, b.dependent}));
        grandparent_ptr_.push_back(static_cast<std::int64_t>(grandparents_.size()));
    }
}

std::vector<std::int32_t> HeadAutomata::arcs_of(const std::vector<std::int32_t>& heads) const {
    std::vector<std::int32_t> arcs;
    for (std::size_t i = 0; i < heads.size(); ++i)
        arcs.push_back(
            static_cast<std::int32_t>(find_arc(arcs_, {heads[i], static_cast<std::int32_t>(i) + 1})));
    return arcs;
}

double HeadAutomata::score(const double* scores, const std::vector<std::int32_t>& tree) const {
    double score = 0;
    for (const std::int32_t a : tree) score += scores[a];
    for (std::int32_t head = 0; head <= n_words(); ++head) {
        const std::int64_t k = head == 0 ? 0 : tree[head - 1] - first_into(head);
        for (const Side side : {Side::left, Side::right}) {
            if (head == 0 && side == Side::left) continue;
            const auto& arcs = out(head, side);
            std::int64_t last = -1;
            for (std::int64_t j = 0; j < static_cast<std::int64_t>(arcs.size()); ++j) {
                const std::int32_t b = arcs[j];
                if (tree[arcs_[b].dependent - 1] != b) continue;
                score += scores[siblings(b, last)];
                if (const std::int32_t part = head == 0 ? -1 : grandparent(b, k); part >= 0)
                    score += scores[part];
                last = j;
            }
            const std::int32_t end = last < 0 ? leaf(head, side) : stop(arcs[last]);
            if (end >= 0) score += scores[end];
        }
    }
    return score;
}

}  // namespace crfkit
