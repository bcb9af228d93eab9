#include "lattice/function_lattices.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "base/threads.hpp"

namespace crfkit {

Lattices::Lattices(std::shared_ptr<const Layout> model, std::shared_ptr<const Design> data,
                   std::span<const std::uint8_t> starts, std::span<const std::uint8_t> ends, int n_threads)
    : layout(std::move(model)),
      design(std::move(data)),
      bigrams(existing_bigrams(*layout)),
      starts_(starts.begin(), starts.end()),
      ends_(ends.begin(), ends.end()) {
    design->check_layout(*layout);
    if (starts_.size() != static_cast<std::size_t>(layout->n_labels) ||
        ends_.size() != static_cast<std::size_t>(layout->n_labels))
        throw std::invalid_argument("starts and ends must have one entry for each label");
    candidates = find_candidates(bigrams, *design, n_threads);
    arc_ptr.assign(static_cast<std::size_t>(n_sequences()) + 1, 0);
    std::vector<Lattice> lattices(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(n_sequences(), n_threads, [&](std::int64_t n, int worker) {
        if (design->sequence_ptr[n] == design->sequence_ptr[n + 1]) return;
        Lattice& lattice = lattices[worker];
        build(n, lattice);
        std::int64_t& count = arc_ptr[n + 1];
        count = lattice.arc.size() - std::count(lattice.arc.begin(), lattice.arc.end(), -1);
        for (std::int64_t j = 0; j < lattice.position_ptr[1]; ++j) count += starts_[lattice.labels[j]] != 0;
        for (std::int64_t j = lattice.position_ptr[lattice.n_positions() - 1]; j < lattice.n_nodes(); ++j)
            count += ends_[lattice.labels[j]] != 0;
    });
    std::partial_sum(arc_ptr.begin(), arc_ptr.end(), arc_ptr.begin());
}

void Lattices::build(std::int64_t n, Lattice& lattice) const {
    lattice.build(bigrams, candidates, design->sequence_ptr[n], design->sequence_ptr[n + 1]);
    std::int32_t number = 0;
    for (std::int32_t& arc : lattice.arc)
        if (arc >= 0) arc = number++;
}

std::int64_t Lattices::n_starts(const Lattice& lattice) const {
    return std::count_if(lattice.labels.begin(), lattice.labels.begin() + lattice.position_ptr[1],
                         [&](std::int32_t label) { return starts_[label] != 0; });
}

ArcList Lattices::arcs(int n_threads) const {
    ArcList out;
    for (auto* list : {&out.before, &out.after, &out.position})
        list->resize(static_cast<std::size_t>(n_arcs()));
    std::vector<Lattice> lattices(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(n_sequences(), n_threads, [&](std::int64_t n, int worker) {
        if (design->sequence_ptr[n] == design->sequence_ptr[n + 1]) return;
        Lattice& lattice = lattices[worker];
        build(n, lattice);
        const auto set = [&](std::int64_t k, std::int32_t before, std::int32_t after, std::int64_t position) {
            out.before[arc_ptr[n] + k] = before;
            out.after[arc_ptr[n] + k] = after;
            out.position[arc_ptr[n] + k] = static_cast<std::int32_t>(position);
        };
        const std::int64_t first = n_starts(lattice), T = lattice.n_positions();
        each_boundary_arc(n, lattice, [&](std::int64_t k, std::int64_t j) {
            if (k < first)
                set(k, bigrams.n_labels, lattice.labels[j], 0);
            else
                set(k, lattice.labels[j], bigrams.n_labels, T);
        });
        for (std::int64_t t = 1; t < T; ++t)
            for (std::int64_t j = lattice.position_ptr[t]; j < lattice.position_ptr[t + 1]; ++j)
                for (std::int64_t e = lattice.in_ptr[j]; e < lattice.in_ptr[j + 1]; ++e)
                    if (lattice.arc[e] >= 0)
                        set(first + lattice.arc[e], lattice.labels[lattice.from[e]], lattice.labels[j], t);
    });
    return out;
}

void Lattices::check(const ActiveFeatures& active, std::int64_t n_weights) const {
    if (active.n_parts != (active.on_arcs ? n_arcs() : candidates.n_nodes()))
        throw std::invalid_argument("active: there must be as many parts as the lattices have");
    if (active.first_weight > n_weights - active.n_weights)
        throw std::invalid_argument("active: it names weights beyond the last one");
}

void Lattices::score(const std::vector<ActiveFeatures>& active, const double* w, std::int64_t n,
                     const Lattice& lattice, std::vector<double>& nodes, std::vector<double>& arcs) const {
    const std::int64_t first_node = candidates.position_ptr[design->sequence_ptr[n]];
    const std::int64_t first_arc = arc_ptr[n], n_arcs = arc_ptr[n + 1] - first_arc;
    nodes.assign(lattice.labels.size(), 0.0);
    arcs.assign(static_cast<std::size_t>(n_arcs), 0.0);
    for (const ActiveFeatures& block : active) {
        if (block.on_arcs)
            block.score(first_arc, n_arcs, w, arcs.data());
        else
            block.score(first_node, lattice.n_nodes(), w, nodes.data());
    }
    std::int64_t n_ends = 0;
    const std::int64_t first = n_starts(lattice);
    each_boundary_arc(n, lattice, [&](std::int64_t k, std::int64_t j) {
        nodes[j] += arcs[k];
        n_ends += k >= first;
    });
    arcs.resize(static_cast<std::size_t>(n_arcs - n_ends));  // only those between labels are left
    arcs.erase(arcs.begin(), arcs.begin() + first);
}

ActiveSource::ActiveSource(const Lattices& lattices, std::vector<ActiveFeatures> active,
                           std::span<const double> w)
    : lattices_(lattices), active_(std::move(active)), w_(w.data()) {
    for (const ActiveFeatures& block : active_) lattices.check(block, static_cast<std::int64_t>(w.size()));
}

void ActiveSource::load(std::int64_t n, ScoredLattice& scored) const {
    lattices_.build(n, scored.lattice);
    lattices_.score(active_, w_, n, scored.lattice, scored.nodes, scored.own_arcs.scores);
    scored.own_arcs.exponentiate(lattices_.bigrams.soft);
    scored.arcs = &scored.own_arcs;
}

}  // namespace crfkit
