#include "segments/word_lattice.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>

#include "base/interruption.hpp"
#include "base/lists.hpp"

namespace crfkit {
namespace {

[[noreturn]] void refuse(std::int64_t n, std::int64_t farthest, std::int64_t length, const char* which) {
    throw std::invalid_argument("sequence " + std::to_string(n) + ": no path of " + which +
                                "arcs leads from 0 to " + std::to_string(length) +
                                "; those that begin at 0 lead to " + std::to_string(farthest) + " at most");
}

}  // namespace

std::int64_t WordTransitions::find(std::int32_t before, std::int32_t after) const {
    const std::int64_t key = static_cast<std::int64_t>(before) * n_labels + after;
    const auto found = std::lower_bound(keys.begin(), keys.end(), key);
    return found == keys.end() || *found != key ? -1 : found - keys.begin();
}

WordLattices::WordLattices(std::shared_ptr<const Layout> of_weights, std::shared_ptr<const Design> of_arcs,
                           WordArcs given, WordTransitions of_labels)
    : layout(std::move(of_weights)),
      design(std::move(of_arcs)),
      arcs(std::move(given)),
      transitions(std::move(of_labels)) {
    check();
    step_ptr.assign(1, 0);
    start_ptr.assign(1, 0);
    end_ptr.assign(1, 0);
    end_step.assign(arcs.starts.size(), 0);
    Pace pace;
    for (std::int64_t n = 0; n < n_sequences(); ++n) {
        pace.work(64 * (design->sequence_ptr[n + 1] - design->sequence_ptr[n]));
        compile(n);
    }
}

void WordLattices::check() const {
    design->check_layout(*layout);
    const auto T = static_cast<std::size_t>(design->n_positions());
    if (arcs.lengths.size() != static_cast<std::size_t>(n_sequences()) || arcs.starts.size() != T ||
        arcs.ends.size() != T || arcs.labels.size() != T || arcs.outcomes.size() != T ||
        (!arcs.exists.empty() && arcs.exists.size() != T))
        throw std::invalid_argument(
            "expected a length for each sequence, and the ends and label of each arc");
    if (transitions.n_labels < 1) throw std::invalid_argument("expected labels of transitions");
    check_range(arcs.labels, 0, transitions.n_labels, "labels");
    check_range(arcs.outcomes, -1, layout->n_labels, "outcomes");
    check_pointers(transitions.weight_ptr, transitions.size(), transitions.weights.size(), "weight_ptr");
    if (!transitions.values.empty() && transitions.values.size() != transitions.weights.size())
        throw std::invalid_argument("expected a value for each weight of the transitions");
    const std::int64_t n_pairs = static_cast<std::int64_t>(transitions.n_labels) * transitions.n_labels;
    for (std::size_t i = 0; i < transitions.keys.size(); ++i)
        if (transitions.keys[i] < (i == 0 ? 0 : transitions.keys[i - 1] + 1) ||
            transitions.keys[i] >= n_pairs)
            throw std::invalid_argument("the pairs of labels must be ascending");
    for (std::int64_t n = 0; n < n_sequences(); ++n)
        for (std::int64_t a = design->sequence_ptr[n]; a < design->sequence_ptr[n + 1]; ++a)
            if (arcs.starts[a] < 0 || arcs.starts[a] >= arcs.ends[a] || arcs.ends[a] > arcs.lengths[n])
                throw std::invalid_argument("sequence " + std::to_string(n) + ", arc " +
                                            std::to_string(a - design->sequence_ptr[n]) + ": it leads from " +
                                            std::to_string(arcs.starts[a]) + " to " +
                                            std::to_string(arcs.ends[a]) +
                                            ", expected a start of 0 or more, before its end, which is " +
                                            std::to_string(arcs.lengths[n]) + " at most");
}

// Sorts the arcs of a sequence, keeps those on paths from 0 to its length, and numbers their boundaries.
void WordLattices::compile(std::int64_t n) {
    const std::int64_t length = arcs.lengths[n];
    step_ptr.push_back(step_ptr.back());
    if (length == 0) return;
    std::vector<std::int64_t> here, places{0};
    for (std::int64_t a = design->sequence_ptr[n]; a < design->sequence_ptr[n + 1]; ++a) {
        if (!arcs.exists.empty() && !arcs.exists[a]) continue;
        here.push_back(a);
        places.push_back(arcs.starts[a]);
        places.push_back(arcs.ends[a]);
    }
    std::stable_sort(here.begin(), here.end(),
                     [&](std::int64_t a, std::int64_t b) { return arcs.starts[a] < arcs.starts[b]; });
    const auto rank = [&](std::int64_t place) {
        return std::lower_bound(places.begin(), places.end(), place) - places.begin();
    };
    const auto make_distinct = [&] {
        std::sort(places.begin(), places.end());
        places.erase(std::unique(places.begin(), places.end()), places.end());
    };
    make_distinct();
    std::vector<std::uint8_t> from_start(places.size(), 0), to_end(places.size(), 0);
    const auto start = [&](std::int64_t a) { return rank(arcs.starts[a]); };
    const auto end = [&](std::int64_t a) { return rank(arcs.ends[a]); };
    from_start[0] = 1;
    std::int64_t farthest = 0;
    for (const std::int64_t a : here) {
        if (!from_start[start(a)]) continue;
        from_start[end(a)] = 1;
        farthest = std::max(farthest, arcs.ends[a]);
    }
    if (farthest != length) refuse(n, farthest, length, "");
    to_end.back() = 1;
    for (std::size_t i = here.size(); i-- > 0;)
        if (to_end[end(here[i])]) to_end[start(here[i])] = 1;
    std::erase_if(here, [&](std::int64_t a) { return !from_start[start(a)] || !to_end[end(a)]; });
    places.assign(1, 0);
    for (const std::int64_t a : here) places.push_back(arcs.ends[a]);
    make_distinct();

    const std::int64_t n_steps = static_cast<std::int64_t>(places.size()) - 1;
    step_ptr.back() += n_steps;
    const auto add = [&](std::vector<std::int64_t>& sorted, std::vector<std::int64_t>& ptr, auto step) {
        sorted.insert(sorted.end(), here.begin(), here.end());
        std::vector<std::int64_t> counts(static_cast<std::size_t>(n_steps), 0);
        for (const std::int64_t a : here) ++counts[step(a)];
        for (const std::int64_t count : counts) ptr.push_back(ptr.back() + count);
    };
    for (const std::int64_t a : here) end_step[a] = static_cast<std::int32_t>(end(a));
    add(by_start, start_ptr, start);
    // Of equal arcs the latest start comes first, which Viterbi then takes: as MeCab does.
    std::stable_sort(here.begin(), here.end(), [&](std::int64_t a, std::int64_t b) {
        return std::tuple(arcs.ends[a], arcs.labels[a], -arcs.starts[a]) <
               std::tuple(arcs.ends[b], arcs.labels[b], -arcs.starts[b]);
    });
    add(by_end, end_ptr, [&](std::int64_t a) { return end(a) - 1; });
}

void WordLattices::check_annotation(const Annotation& gold) const {
    if (gold.labels.size() != arcs.starts.size() || gold.weights.size() != arcs.lengths.size() ||
        !gold.set_ptr.empty())
        throw std::invalid_argument("expected what is known of each arc, and a weight for each sequence");
    check_range(gold.labels, -1, 2, "labels");
    std::vector<std::uint8_t> reached;  // [boundaries]
    for (std::int64_t n = 0; n < n_sequences(); ++n) {
        reached.assign(static_cast<std::size_t>(n_steps(n) + 1), 0);
        reached[0] = 1;
        std::int64_t farthest = 0;
        for (std::int64_t t = 0; t < n_steps(n); ++t)
            for (const std::int64_t a : leaving(n, t)) {
                if (!reached[t] || gold.labels[a] == kOffPath) continue;
                reached[end_step[a]] = 1;
                farthest = std::max(farthest, arcs.ends[a]);
            }
        if (farthest != arcs.lengths[n]) refuse(n, farthest, arcs.lengths[n], "allowed ");
    }
}

}  // namespace crfkit
