#include "arc_model.hpp"

#include <numeric>

#include "candidates.hpp"

namespace crfkit {
namespace {

// [outcomes] the labels that are or have each outcome.
std::vector<std::vector<std::int32_t>> labels_by_outcome(const Layout& layout) {
    std::vector<std::vector<std::int32_t>> labels_of(static_cast<std::size_t>(layout.n_outcomes()));
    for (std::int32_t b = 0; b < layout.n_labels; ++b) {
        labels_of[b].push_back(b);
        if (layout.facets.empty()) continue;
        for (std::int64_t i = layout.facets.ptr[b]; i < layout.facets.ptr[b + 1]; ++i)
            labels_of[layout.facets.ids[i]].push_back(b);
    }
    return labels_of;
}

}  // namespace

ArcModel::ArcModel(const Layout& layout)
    : bigrams(existing_bigrams(layout)), arcs_begin_(layout.arcs_begin()) {
    const auto labels_of = labels_by_outcome(layout);
    const auto n = static_cast<std::int32_t>(layout.arc_before.size());
    for (std::int32_t i = 0; i < n; ++i) {
        if (layout.arc_before[i] == layout.n_labels)
            for (const std::int32_t b : labels_of[layout.arc_after[i]]) start_.emplace_back(b, i);
        if (layout.arc_after[i] == layout.n_labels)
            for (const std::int32_t b : labels_of[layout.arc_before[i]]) end_.emplace_back(b, i);
    }
    // Calls found(k, i) for every listed arc k that weight i scores; start and end stand for no label.
    const auto each = [&](const auto& found) {
        for (std::int32_t i = 0; i < n; ++i)
            for (const std::int32_t a : labels_of[layout.arc_before[i]])
                for (const std::int32_t b : labels_of[layout.arc_after[i]])
                    if (const std::int32_t k = bigrams.find(a, b); k >= 0) found(k, i);
    };
    arc_ptr_.assign(static_cast<std::size_t>(bigrams.n_arcs()) + 1, 0);
    each([&](std::int32_t k, std::int32_t) { ++arc_ptr_[k + 1]; });
    std::partial_sum(arc_ptr_.begin(), arc_ptr_.end(), arc_ptr_.begin());
    arc_ids_.resize(static_cast<std::size_t>(arc_ptr_.back()));
    std::vector<std::int64_t> next = arc_ptr_;
    each([&](std::int32_t k, std::int32_t i) { arc_ids_[next[k]++] = i; });
}

void ArcModel::score(const double* w, ArcTables& tables) const {
    const double* from = w + arcs_begin_;
    tables.arcs.scores.assign(static_cast<std::size_t>(bigrams.n_arcs()), 0.0);
    for (std::size_t k = 0; k < tables.arcs.scores.size(); ++k)
        for (std::int64_t i = arc_ptr_[k]; i < arc_ptr_[k + 1]; ++i)
            tables.arcs.scores[k] += from[arc_ids_[i]];
    tables.start.assign(static_cast<std::size_t>(bigrams.n_labels), 0.0);
    tables.end = tables.start;
    for (const auto& [b, i] : start_) tables.start[b] += from[i];
    for (const auto& [b, i] : end_) tables.end[b] += from[i];
    tables.arcs.exponentiate(bigrams.soft);
}

void ArcModel::add_gradient(const std::vector<double>& arcs, const std::vector<double>& start,
                            const std::vector<double>& end, double* out) const {
    double* to = out + arcs_begin_;
    for (std::size_t k = 0; k < arcs.size(); ++k)
        for (std::int64_t i = arc_ptr_[k]; i < arc_ptr_[k + 1]; ++i) to[arc_ids_[i]] += arcs[k];
    for (const auto& [b, i] : start_) to[i] += start[b];
    for (const auto& [b, i] : end_) to[i] += end[b];
}

}  // namespace crfkit
