#include "training/chain_factors.hpp"

#include <algorithm>

namespace crfkit {

void DesignFactors::go_to(std::int64_t t) {
    if (t == t_) return;
    t_ = t;
    const std::int64_t position = design_.sequence_ptr[n_] + t;
    read_states(position);
    if (by_position()) read_arcs(position);
}

// The features of the position by the labels, or facets, that they score.
void DesignFactors::read_states(std::int64_t position) {
    for (const std::int32_t outcome : outcomes_) by_outcome_[outcome].clear();
    outcomes_.clear();
    const auto add = [&](std::int32_t outcome, std::int64_t weight, double value) {
        if (by_outcome_[outcome].empty()) outcomes_.push_back(outcome);
        by_outcome_[outcome].push_back({weight, value});
    };
    const auto each = [&](const ActiveIds& list, const auto& function) {
        if (list.ptr.size() == 0) return;
        for (std::int64_t i = list.ptr[position]; i < list.ptr[position + 1]; ++i)
            function(i, list.values.size() > 0 ? list.values[i] : 1.0);
    };
    const auto add_pairs = [&](std::int32_t f, double value) {
        for (std::int64_t p = layout_.pair_ptr[f]; p < layout_.pair_ptr[f + 1]; ++p)
            add(layout_.pair_labels[p], p, value);
    };
    each(design_.features, [&](std::int64_t i, double value) { add_pairs(design_.features.ids[i], value); });
    const auto& [rows, entries, entry_labels] = design_.split;
    each(rows, [&](std::int64_t i, double value) { add_pairs(layout_.row_features[rows.ids[i]], value); });
    each(entries, [&](std::int64_t i, double value) { add(entry_labels[i], entries.ids[i], value); });
}

void DesignFactors::read_arcs(std::int64_t position) {
    const std::int32_t L = layout_.n_labels;
    by_arc_.clear();
    for (std::int64_t i = design_.arcs.ptr[position]; i < design_.arcs.ptr[position + 1]; ++i) {
        const std::int32_t f = design_.arcs.ids[i];
        const double value = design_.arcs.values.size() > 0 ? design_.arcs.values[i] : 1.0;
        for (std::int64_t p = layout_.arc_ptr[f]; p < layout_.arc_ptr[f + 1]; ++p) {
            const std::int32_t pair = layout_.arc_triples[p], k = model_.bigrams.find(pair / L, pair % L);
            if (k >= 0) by_arc_.push_back({k, {layout_.triples_begin() + p, value}});
        }
    }
    std::stable_sort(by_arc_.begin(), by_arc_.end(),
                     [](const ArcFeature& a, const ArcFeature& b) { return a.arc < b.arc; });
}

void DesignFactors::add_label(std::int64_t t, std::int32_t b, Parts& parts) {
    add_features(t, b, parts);
    const std::int64_t position = design_.sequence_ptr[n_] + t;
    add_ends(t == 0, position + 1 == design_.sequence_ptr[n_ + 1], b, parts);
}

void DesignFactors::add_features(std::int64_t t, std::int32_t b, Parts& parts) {
    go_to(t);
    const auto add = [&](std::int32_t outcome) {
        for (const auto& [weight, value] : by_outcome_[outcome]) parts.add_feature(weight, value);
    };
    if (layout_.facets.empty())
        add(b);
    else
        for (std::int64_t i = layout_.facets.ptr[b]; i < layout_.facets.ptr[b + 1]; ++i)
            add(layout_.facets.ids[i]);
    const std::int64_t position = design_.sequence_ptr[n_] + t, L = layout_.n_labels;
    for (std::size_t block = 0; block < design_.dense.size(); ++block) {
        const std::int64_t n_columns = layout_.dense_columns[block];
        for (std::int64_t c = 0; c < n_columns; ++c)
            if (const double value = design_.dense[block][position * n_columns + c]; value != 0)
                parts.add_feature(layout_.dense_begin(block) + c * L + b, value);
    }
}

void DesignFactors::add_ends(bool first, bool last, std::int32_t b, Parts& parts) const {
    if (first)
        for (const std::int64_t weight : model_.of_start(b)) parts.add_feature(weight, 1);
    if (last)
        for (const std::int64_t weight : model_.of_end(b)) parts.add_feature(weight, 1);
}

void DesignFactors::add_arc(std::int64_t t, std::int32_t k, Parts& parts) {
    for (const std::int64_t weight : model_.of_arc(k)) parts.add_feature(weight, 1);
    if (!by_position()) return;
    go_to(t);
    auto found = std::lower_bound(by_arc_.begin(), by_arc_.end(), k,
                                  [](const ArcFeature& a, std::int32_t arc) { return a.arc < arc; });
    for (; found != by_arc_.end() && found->arc == k; ++found)
        parts.add_feature(found->feature.weight, found->feature.value);
}

}  // namespace crfkit
