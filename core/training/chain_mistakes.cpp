#include "training/chain_mistakes.hpp"

#include <algorithm>

namespace crfkit {

std::int64_t ChainMistakes::find(std::int64_t n, Difference& difference) {
    const std::int64_t first = design_.sequence_ptr[n], last = design_.sequence_ptr[n + 1];
    const auto n_positions = static_cast<std::size_t>(last - first);
    if (n_positions == 0) return 0;
    predicted_.resize(n_positions);
    predict(n);
    if (gold_.complete(first, last)) {
        right_.assign(gold_.labels.begin() + first, gold_.labels.begin() + last);
    } else {
        bool admitted = true;
        for (std::size_t t = 0; t < n_positions && admitted; ++t)
            admitted = gold_.possible(first + static_cast<std::int64_t>(t), predicted_[t]);
        if (admitted) return 0;
        right_.resize(n_positions);
        correct(n);
    }
    std::int64_t n_wrong = 0;
    for (std::size_t t = 0; t < n_positions; ++t) {
        if (right_[t] == predicted_[t]) continue;
        ++n_wrong;
        add_position(first + static_cast<std::int64_t>(t), right_[t], 1, difference);
        add_position(first + static_cast<std::int64_t>(t), predicted_[t], -1, difference);
    }
    if (n_wrong == 0) return 0;
    add_arcs(first, right_, 1, difference);
    add_arcs(first, predicted_, -1, difference);
    return n_wrong;
}

void ChainMistakes::add_arcs(std::int64_t first, const std::vector<std::int32_t>& labels, double sign,
                             Difference& difference) const {
    const auto add = [&](std::span<const std::int64_t> weights) {
        for (const std::int64_t i : weights) difference.add(i, sign);
    };
    if (right_.front() != predicted_.front()) add(arcs_.of_start(labels.front()));
    if (right_.back() != predicted_.back()) add(arcs_.of_end(labels.back()));
    for (std::size_t t = 1; t < labels.size(); ++t) {
        if (right_[t - 1] == predicted_[t - 1] && right_[t] == predicted_[t]) continue;
        const std::int32_t a = labels[t - 1], b = labels[t];
        if (const std::int32_t k = arcs_.bigrams.find(a, b); k >= 0) add(arcs_.of_arc(k));
        if (design_.arcs.ptr.size() > 0)
            add_arc_features(first + static_cast<std::int64_t>(t), a * layout_.n_labels + b, sign,
                             difference);
    }
}

void ChainMistakes::add_arc_features(std::int64_t position, std::int32_t pair, double sign,
                                     Difference& difference) const {
    const ActiveIds& arcs = design_.arcs;
    const std::int32_t* triples = layout_.arc_triples.data();
    for (std::int64_t i = arcs.ptr[position]; i < arcs.ptr[position + 1]; ++i) {
        const std::int32_t *begin = triples + layout_.arc_ptr[arcs.ids[i]],
                           *end = triples + layout_.arc_ptr[arcs.ids[i] + 1];
        const std::int32_t* found = std::lower_bound(begin, end, pair);
        if (found == end || *found != pair) continue;
        difference.add(layout_.triples_begin() + (found - triples),
                       arcs.values.size() > 0 ? sign * arcs.values[i] : sign);
    }
}

}  // namespace crfkit
