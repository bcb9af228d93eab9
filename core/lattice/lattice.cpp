#include "lattice/lattice.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/interruption.hpp"

namespace crfkit {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

}  // namespace

void Lattice::build(const Bigrams& bigrams, const Candidates& candidates, std::int64_t first,
                    std::int64_t last) {
    const std::int64_t base = candidates.position_ptr[first];
    position_ptr.clear();
    for (std::int64_t t = first; t <= last; ++t) position_ptr.push_back(candidates.position_ptr[t] - base);
    labels.assign(candidates.labels.begin() + base,
                  candidates.labels.begin() + candidates.position_ptr[last]);
    in_ptr.assign(1, 0);
    from.clear();
    arc.clear();
    place_.assign(static_cast<std::size_t>(bigrams.n_labels), -1);
    Pace pace;
    for (std::int64_t t = 0; t < n_positions(); ++t) {
        const std::int64_t before = t ? position_ptr[t - 1] : 0, here = t ? position_ptr[t] : 0;
        pace.work(8 * (here - before) * (position_ptr[t + 1] - position_ptr[t]));
        for (std::int64_t i = before; i < here; ++i) place_[labels[i]] = static_cast<std::int32_t>(i);
        for (std::int64_t j = position_ptr[t]; j < position_ptr[t + 1]; ++j) {
            const std::int32_t b = labels[j];
            const std::int64_t n_listed = bigrams.in_ptr[b + 1] - bigrams.in_ptr[b];
            if (bigrams.soft || here - before <= n_listed) {
                for (std::int64_t i = before; i < here; ++i) {
                    const std::int32_t number = bigrams.find(labels[i], b);
                    if (number < 0 && !bigrams.soft) continue;
                    from.push_back(static_cast<std::int32_t>(i));
                    arc.push_back(number);
                }
            } else if (here > before) {
                for (std::int64_t k = bigrams.in_ptr[b]; k < bigrams.in_ptr[b + 1]; ++k)
                    if (const std::int32_t i = place_[bigrams.in_before[k]]; i >= 0) {
                        from.push_back(i);
                        arc.push_back(static_cast<std::int32_t>(k));
                    }
            }
            in_ptr.push_back(static_cast<std::int64_t>(from.size()));
        }
        for (std::int64_t i = before; i < here; ++i) place_[labels[i]] = -1;
    }
    link_boundaries();
}

std::int64_t Lattice::find_node(std::int64_t t, std::int32_t label) const {
    return std::lower_bound(labels.begin() + position_ptr[t], labels.begin() + position_ptr[t + 1], label) -
           labels.begin();
}

std::int64_t Lattice::find_arc(std::int64_t before, std::int64_t node) const {
    const auto first = from.begin() + in_ptr[node], last = from.begin() + in_ptr[node + 1];
    const auto found = std::lower_bound(first, last, static_cast<std::int32_t>(before));
    return found != last && *found == before ? found - from.begin() : -1;
}

void Lattice::close(const Annotation& annotation, std::int64_t first_position,
                    std::vector<double>& scores) const {
    for (std::int64_t t = 0; t < n_positions(); ++t)
        for (std::int64_t j = position_ptr[t]; j < position_ptr[t + 1]; ++j)
            if (!annotation.possible(first_position + t, labels[j])) scores[j] = kNever;
}

// START is node n_nodes and END the one after it.
void Lattice::link_boundaries() {
    const std::int64_t n_first = position_ptr[1], last = position_ptr[n_positions() - 1];
    bounds.in_ptr.resize(static_cast<std::size_t>(n_first) + 2);
    std::iota(bounds.in_ptr.begin(), bounds.in_ptr.end(), 0);
    bounds.in_ptr.back() = n_first + n_nodes() - last;
    bounds.from.assign(static_cast<std::size_t>(n_first), static_cast<std::int32_t>(n_nodes()));
    for (std::int64_t j = last; j < n_nodes(); ++j)
        bounds.from.push_back(static_cast<std::int32_t>(j - n_nodes() - 1));
    bounds.arc.assign(bounds.from.size(), -1);
}

}  // namespace crfkit
