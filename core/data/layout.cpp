#include "data/layout.hpp"

#include <algorithm>
#include <stdexcept>

#include "base/lists.hpp"

namespace crfkit {
namespace {

void check_facets(const Facets& facets, std::int32_t n_labels) {
    if (facets.empty()) return;
    if (facets.n < 1 || facets.n > INT32_MAX - n_labels - 1)
        throw std::invalid_argument("facets: there are too many, or none");
    check_pointers(facets.ptr, n_labels, facets.ids.size(), "facet_ptr");
    check_range(facets.ids, n_labels + 1, n_labels + facets.n + 1, "facet_ids");
    check_ascending(facets.ptr, facets.ids, "facet_ids");
}

}  // namespace

Layout::Layout(std::int32_t labels, std::span<const std::int64_t> pairs_at,
               std::span<const std::int32_t> pairs, std::span<const std::int64_t> dense,
               std::span<const std::int32_t> before, std::span<const std::int32_t> after,
               std::span<const std::int64_t> triples_at, std::span<const std::int32_t> triples,
               std::optional<Bigrams> existing, Facets label_facets)
    : n_labels(labels), bigrams(std::move(existing)), facets(std::move(label_facets)) {
    if (labels < 1) throw std::invalid_argument("a model needs at least one label");
    if (labels > 30000)
        throw std::invalid_argument("more than 30,000 labels: the arcs would not fit in memory");
    check_pointers(pairs_at, pairs.size(), "pair_ptr");
    check_facets(facets, labels);
    check_range(pairs, 0, facets.empty() ? labels : n_outcomes(), "pair_labels");
    if (!facets.empty() &&
        std::any_of(pairs.begin(), pairs.end(), [&](std::int32_t outcome) { return outcome <= labels; }))
        throw std::invalid_argument("pair_labels: where labels have facets, expected facets alone");
    check_ascending(pairs_at, pairs, "pair_labels");
    check_pointers(triples_at, triples.size(), "arc_ptr");
    check_range(triples, 0, static_cast<std::int64_t>(labels) * labels, "arc_triples");
    check_ascending(triples_at, triples, "arc_triples");
    if (before.size() != after.size())
        throw std::invalid_argument("arc_before and arc_after must have the same length");
    check_range(before, 0, n_outcomes(), "arc_before");
    check_range(after, 0, n_outcomes(), "arc_after");
    for (std::size_t i = 0; i < before.size(); ++i)
        if (before[i] == labels && after[i] == labels)
            throw std::invalid_argument(
                "an arc from the start straight to the end has no position to stand at");
    if (bigrams && bigrams->n_labels != labels)
        throw std::invalid_argument("the bigrams are of another number of labels");
    if (pairs.size() > INT32_MAX || pairs_at.size() > INT32_MAX)
        throw std::invalid_argument("more than 2,147,483,647 state features or pairs of them with labels");
    std::int64_t n_columns = 0;
    for (const std::int64_t columns : dense) {
        if (columns < 0 || columns > INT32_MAX - n_columns)
            throw std::invalid_argument("dense blocks need 0 to 2,147,483,647 columns together");
        n_columns += columns;
    }
    pair_ptr = copy(pairs_at);
    pair_labels = copy(pairs);
    dense_columns = copy(dense);
    arc_before = copy(before);
    arc_after = copy(after);
    arc_ptr = copy(triples_at);
    arc_triples = copy(triples);

    const std::int64_t few = std::max<std::int64_t>(3, labels / 16);
    row_of.assign(static_cast<std::size_t>(n_features()), -1);
    for (std::int64_t f = 0; f < n_features(); ++f)
        if (pair_ptr[f + 1] - pair_ptr[f] > few || pair_ptr[f + 1] - pair_ptr[f] == labels) {
            row_of[f] = static_cast<std::int32_t>(row_features.size());
            row_features.push_back(static_cast<std::int32_t>(f));
        }
}

std::int64_t Layout::dense_begin(std::size_t block) const {
    std::int64_t begin = static_cast<std::int64_t>(pair_labels.size());
    for (std::size_t k = 0; k < block; ++k) begin += dense_columns[k] * n_labels;
    return begin;
}

}  // namespace crfkit
