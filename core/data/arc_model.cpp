#include "data/arc_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "data/candidates.hpp"

namespace crfkit {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

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

// The maximum is subtracted before exp: no weight is above 1. An arc that is not listed scores 0.
void ArcScores::exponentiate(bool soft) {
    maximum = soft ? 0.0 : kNever;
    for (const double score : scores) maximum = std::max(maximum, score);
    if (maximum == kNever) maximum = 0;
    weights.resize(scores.size());
    for (std::size_t i = 0; i < scores.size(); ++i) weights[i] = std::exp(scores[i] - maximum);
    unlisted = soft ? std::exp(-maximum) : 0.0;
}

void ArcModel::Lists::sum(const double* w, std::vector<double>& sums) const {
    sums.assign(ptr.size() - 1, 0.0);
    for (std::size_t i = 0; i < sums.size(); ++i)
        for (std::int64_t j = ptr[i]; j < ptr[i + 1]; ++j) sums[i] += w[ids[j]];
}

void ArcModel::Lists::spread(const std::vector<double>& numbers, double* w) const {
    for (std::size_t i = 0; i < numbers.size(); ++i)
        for (std::int64_t j = ptr[i]; j < ptr[i + 1]; ++j) w[ids[j]] += numbers[i];
}

template <class Each>
ArcModel::Lists ArcModel::lists_of(std::int64_t n_lists, const Each& each) {
    Lists lists;
    lists.ptr.assign(static_cast<std::size_t>(n_lists) + 1, 0);
    each([&](std::int32_t list, std::int64_t) { ++lists.ptr[list + 1]; });
    std::partial_sum(lists.ptr.begin(), lists.ptr.end(), lists.ptr.begin());
    lists.ids.resize(static_cast<std::size_t>(lists.ptr.back()));
    std::vector<std::int64_t> next = lists.ptr;
    each([&](std::int32_t list, std::int64_t weight) { lists.ids[next[list]++] = weight; });
    return lists;
}

ArcModel::ArcModel(const Layout& layout) : bigrams(existing_bigrams(layout)) {
    const auto labels_of = labels_by_outcome(layout);
    const std::int64_t begin = layout.arcs_begin();
    const std::size_t n = layout.arc_before.size();
    const std::int32_t L = layout.n_labels;
    start_ = lists_of(L, [&](const auto& found) {
        for (std::size_t i = 0; i < n; ++i)
            if (layout.arc_before[i] == L)
                for (const std::int32_t b : labels_of[layout.arc_after[i]])
                    found(b, begin + static_cast<std::int64_t>(i));
    });
    end_ = lists_of(L, [&](const auto& found) {
        for (std::size_t i = 0; i < n; ++i)
            if (layout.arc_after[i] == L)
                for (const std::int32_t b : labels_of[layout.arc_before[i]])
                    found(b, begin + static_cast<std::int64_t>(i));
    });
    arcs_ = lists_of(bigrams.n_arcs(), [&](const auto& found) {  // start and end stand for no label
        for (std::size_t i = 0; i < n; ++i)
            for (const std::int32_t a : labels_of[layout.arc_before[i]])
                for (const std::int32_t b : labels_of[layout.arc_after[i]])
                    if (const std::int32_t k = bigrams.find(a, b); k >= 0)
                        found(k, begin + static_cast<std::int64_t>(i));
    });
}

void ArcModel::score(const double* w, ArcTables& tables) const {
    arcs_.sum(w, tables.arcs.scores);
    start_.sum(w, tables.start);
    end_.sum(w, tables.end);
    tables.arcs.exponentiate(bigrams.soft);
}

void ArcModel::add_gradient(const std::vector<double>& arcs, const std::vector<double>& start,
                            const std::vector<double>& end, double* out) const {
    arcs_.spread(arcs, out);
    start_.spread(start, out);
    end_.spread(end, out);
}

}  // namespace crfkit
